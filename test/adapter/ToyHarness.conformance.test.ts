/** The adapter of `docs/write-an-adapter.md`, by the suite that every adapter passes, on the program that it is for. */
import { describe, it } from "@effect/vitest"
import { ToolAllowlist } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { HarnessSuite, Situation } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as ToyHarness from "../../examples/adapter/ToyHarness.ts"

const program = fileURLToPath(new URL("../../examples/adapter/toy-agent.mjs", import.meta.url))

const cannot = {
  rebinds: "a chat of the toy keeps its id",
  renames: "a chat of the toy keeps its id",
  mcp_fails: "the toy has no MCP servers",
  other_model: "the toy has one model and is asked for no other",
  background: "the toy declares no tasks",
  own_turn: "the toy does nothing that it is not prompted for"
} as const satisfies Partial<Record<Situation.Situation, string>>

/** What the toy's model wants: one thing after the other, for the prompt with which the situation begins. */
type Wants = ReadonlyArray<Readonly<Record<string, unknown>>>
/** The toy's home in a situation; `free` has the tools that its user lets run unasked. */
interface Home {
  readonly wants?: Wants
  /** What it wants for the prompt {@link Situation.meanwhile}. */
  readonly meanwhile?: Wants
  readonly hooks?: { readonly start?: string; readonly ready?: string }
  readonly free?: ReadonlyArray<string>
}

const echo: Wants = [{ say: "$prompts" }, { tokens: { in: 120, out: 30, cached: 100 } }]
const stillHere = { say: "still here" }
/** A shell's command that writes bytes one by one. */
const bytewise = (text: string) => [...Buffer.from(text)].map((byte) => `printf '\\${byte.toString(8).padStart(3, "0")}'`).join(";")
const textFrame = (add: string) => `${JSON.stringify({ op: "text", turn: 1, add })}`

/** Every situation is here or among those that cannot be brought about: the compiler sees to it. */
const homes: Readonly<Partial<Record<Situation.Situation, Home>>> = {
  echo: {},
  streams: { wants: [{ say: "one " }, { say: "two" }, { hang: true }] },
  silent: { wants: [{ hang: true }] },
  stuck: { wants: [{ say: "stuck" }, { hook: "trap '' INT TERM; sleep 986 & setsid sleep 986 & (setsid sleep 986 &) ; sleep 986" }] },
  deaf: { hooks: { ready: "sleep 986" } },
  dies: { wants: [{ say: "I was about" }, { hook: `echo "something broke inside; api_key=${Situation.secret}" >&2; kill -9 $PPID` }] },
  exits: { wants: [{ say: "I was about" }, { hook: "kill -TERM $PPID" }, { hang: true }] },
  fails: { wants: [{ say: "I was about" }, { done: "overloaded" }] },
  cut: { wants: [{ say: "I was about" }, { done: "cut" }] },
  refuses: { wants: [{ say: "I cannot" }, { done: "refused" }] },
  asks: { wants: [{ sh: "touch ran" }, { say: "that was it" }] },
  oversteps: { wants: [{ hook: "touch ran" }, { say: "I did it" }] },
  no_usage: { wants: [{ say: "done" }] },
  garbage: {
    wants: [
      { hook: "echo 'Warning: a banner on standard output'" },
      { say: "still " },
      { hook: "printf '\\344\\nnot json\\n\\273\\266\\n'" },
      { hook: `printf '%s%s\\n' '${textFrame("he")}' '${textFrame("re")}'` }
    ]
  },
  unknown_frame: { wants: [{ hook: `echo '{"type":"a_frame_of_the_future","news":1}'` }, stillHere] },
  late_frame: { wants: [{ say: "done" }, { done: "answered" }, { say: "too late" }, { hook: "touch late" }] },
  late_in_turn: { wants: [{ say: "done" }], meanwhile: [{ say: "I go " }, { hook: `echo '${textFrame("too late")}'` }, { say: "on" }] },
  bytewise: { wants: [{ hook: bytewise(`${textFrame(Situation.bytewiseText)}\n`) }] },
  huge_line: { wants: [{ hook: "head -c 40000000 /dev/zero | tr '\\0' x; echo" }, stillHere] },
  leaves_processes: { wants: [{ hook: "sleep 987 & setsid sleep 987 & (setsid sleep 987 &)" }, { say: "I left something running" }] },
  meets: { wants: [{ hook: "touch \"$MEETS_OWN\"; until [ -e \"$MEETS_OTHER\" ]; do sleep 0.05; done" }, { say: "met" }] },
  more_tools: { free: ["sh"] },
  tells_options: { wants: [{ say: "{\"model\":\"parrot\",\"system\":\"$rules\"}" }] },
  never_ready: { hooks: { start: "sleep 986" } },
  ready_then_dies: { wants: [{ say: "$prompts" }, { done: "answered" }, { hook: "kill -9 $PPID" }] }
} satisfies Readonly<Record<Exclude<Situation.Situation, keyof typeof cannot>, Home>>

/** Hooks run unasked: only where the harness allows everything do they leave a turn alone. */
const needsEverything = ({ meanwhile = [], wants = [] }: Home, situation: string) =>
  situation !== "oversteps" && [...wants, ...meanwhile].some((want) => "hook" in want)

/** Gives the toy a home of its own, in which it is made to do what the situation says. */
const driver: HarnessSuite.Driver = (situation, { directory }) =>
  Effect.sync(() => {
    const home = homes[situation]
    if (home === undefined) throw new Error(`${situation} is excused, and is driven all the same`)
    const configDir = path.join(directory, "toy")
    fs.mkdirSync(configDir, { recursive: true })
    const write = (file: string, content: unknown) => fs.writeFileSync(path.join(configDir, file), JSON.stringify(content))
    write("model.json", {
      "*": echo,
      ...(home.wants === undefined ? {} : { [Situation.promptOf(situation)]: home.wants }),
      ...(home.meanwhile === undefined ? {} : { [Situation.meanwhile]: home.meanwhile })
    })
    write("hooks.json", home.hooks ?? {})
    write("free.json", { tools: home.free ?? [] })
    return { program, configDir, ...(needsEverything(home, situation) ? { tools: ToolAllowlist.dangerousAll } : {}) }
  })

HarnessSuite.harnessSuite("ToyHarness", { describe: describe.concurrent, it: it.live }, {
  harness: ToyHarness.make,
  layer: Supervisor.layer({ reapOrphans: false }),
  driver,
  tools: { execute: "sh", all: ["look", "sh"] },
  cannot
})
