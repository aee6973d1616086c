/**
 * The rows about going on with a session: its files lost or torn, killed before
 * anything was written down, another id, a fork. They hold for every CLI, and
 * what a CLI has written down by then says what has to come of it.
 */
import { assert } from "@effect/vitest"
import * as fs from "node:fs"
import type { RealCli } from "./realCli.ts"
import { noticesOf } from "./realFacts.ts"
import { heldOf } from "./sessionLog.ts"
import { type Bench, eventually, type Told } from "./turnpikeRun.ts"
import { kill } from "./verdictRows.ts"
import { cellOf, failed, firstText, historiesIn, isWritten, refused, type Row, success } from "./verdictTable.ts"

/** When somebody is killed: at the CLI's first sign, when its model has the prompt and says nothing yet, at the first word. */
export type Moment = "named the session" | "asked its model" | "said a word"

/** Where a CLI keeps its sessions, and how its process is known. */
export interface Kept {
  readonly cli: RealCli
  readonly product: string
  /** The first argument of its process. */
  readonly argument: string
  /** The directory of what was said. */
  readonly histories: (bench: Bench) => string
  /** Takes from the CLI what it knows of its sessions, and nothing else. */
  readonly lose: (bench: Bench) => void
  /** Whether it may leave out, when it resumes, a prompt that it has written down and not answered. */
  readonly mayForget: boolean
  /** Who is killed, and when. */
  readonly kills: ReadonlyArray<readonly ["the CLI" | "Turnpike", Moment]>
}

// Words that stand nowhere else in what a CLI says to its model.
const first = "remember the KINGFISHER"
const answer = "a PELICAN it is"
const second = "and the ALBATROSS"
const third = "and the CORMORANT"

const session = ["--session=one"]
const begin = (bench: Bench, args = session) => bench.run({ task: first, scenario: { type: "fixed", text: answer }, args })
const goOn = (bench: Bench, ...more: ReadonlyArray<string>) => bench.run({ task: second, args: [...session, ...more] })

/** How often each word stands in all that the model was sent with its last request. */
const lastSent = async (bench: Bench): Promise<Readonly<Record<string, number>>> => {
  const body = (await bench.lastRequest())?.body ?? ""
  return Object.fromEntries(["KINGFISHER", "PELICAN", "ALBATROSS", "CORMORANT"].map((word) => [word, body.split(word).length - 1]))
}

/** What a run says of the session's history, in its result and in its notices. */
const history = (told: Told): unknown => ({
  resumed: told.result?.session.resumed,
  notices: told.events.flatMap((event) =>
    event.type === "notice" && ["fresh_session", "rebound", "replayed", "turn_in_doubt"].includes(event.kind) ? [event.kind] : [])
})
const native = { resumed: "native", notices: [] }

/** That the CLI was told once what was said before. */
const isReplayed = async (told: Told, bench: Bench): Promise<void> => {
  assert.deepStrictEqual(history(told), { resumed: "replayed", notices: ["replayed"] })
  assert.deepStrictEqual(await lastSent(bench), { KINGFISHER: 1, PELICAN: 1, ALBATROSS: 1, CORMORANT: 0 })
}

const lost = ({ lose, product }: Kept): ReadonlyArray<Row> => [
  {
    name: `a session that ${product} has lost`,
    cell: failed("SESSION_LOST"),
    play: async (bench) => {
      await begin(bench)
      const before = await heldOf(bench, "one")
      lose(bench)
      const told = await goOn(bench)
      assert.deepStrictEqual(cellOf(await goOn(bench, "--resume=fail"), undefined), failed("SESSION_LOST"))
      assert.deepStrictEqual(await heldOf(bench, "one"), before)
      return told
    },
    also: async (told, bench) => {
      assert.strictEqual(told.result?.session.turn, 0)
      assert.deepStrictEqual((await bench.requests()).filter(({ body }) => body.includes("ALBATROSS")), [])
    }
  },
  {
    name: `a session that ${product} has lost, where going on without it was chosen`,
    cell: success,
    play: async (bench) => {
      await begin(bench)
      lose(bench)
      return goOn(bench, "--resume=fresh")
    },
    also: async (told, bench) => {
      assert.deepStrictEqual(history(told), { resumed: "fresh", notices: ["fresh_session"] })
      assert.deepStrictEqual(await lastSent(bench), { KINGFISHER: 0, PELICAN: 0, ALBATROSS: 1, CORMORANT: 0 })
      const { endings, ids, prompts } = await heldOf(bench, "one")
      assert.deepStrictEqual([prompts, endings, new Set(ids).size], [[first, second], ["completed", "completed"], 2])
    }
  },
  {
    name: `a session that ${product} has lost, where telling it again was chosen`,
    cell: success,
    play: async (bench) => {
      await begin(bench)
      lose(bench)
      return goOn(bench, "--resume=replay")
    },
    also: async (told, bench) => {
      await isReplayed(told, bench)
      const next = await bench.run({ task: third, args: session })
      assert.deepStrictEqual([next.exit, history(next)], [0, native], next.stderr)
      assert.deepStrictEqual((await bench.prompts()).map((prompt) => prompt.split("\n").at(-1)), [second, third])
      assert.deepStrictEqual(await lastSent(bench), { KINGFISHER: 1, PELICAN: 1, ALBATROSS: 1, CORMORANT: 1 })
    }
  },
  {
    name: "a session that Turnpike does not know",
    cell: refused("SESSION_UNKNOWN"),
    play: (bench) => bench.run({ task: "hello", args: [...session, "--resume=fail"] })
  },
  {
    name: `a fork of a session, which ${product} knows nothing of`,
    cell: refused("SESSION_LOST"),
    play: async (bench) => {
      await begin(bench)
      const forked = await bench.command(["sessions", "fork", "one", "--id=two"])
      assert.strictEqual(forked.code, 0, forked.stderr)
      return bench.run({ task: second, args: ["--session=two"] })
    },
    also: async (_, bench) => {
      const before = await heldOf(bench, "one")
      const told = await bench.run({ task: second, args: ["--session=two", "--resume=replay"] })
      assert.strictEqual(told.exit, 0, told.stderr)
      await isReplayed(told, bench)
      const { endings, prompts } = await heldOf(bench, "two")
      assert.deepStrictEqual([prompts, endings], [[first, second], ["completed", "completed"]])
      assert.deepStrictEqual(await heldOf(bench, "one"), before)
    }
  }
]

/** A session of which the CLI has a file that it cannot read. */
export const torn = ({ histories, product }: Kept): Row => ({
  name: `a session whose file ${product} cannot read, where telling it again was chosen`,
  cell: success,
  play: async (bench) => {
    await begin(bench)
    for (const file of historiesIn(histories(bench))) fs.writeFileSync(file, "\0".repeat(4096))
    return goOn(bench, "--resume=replay")
  },
  also: isReplayed
})

/** Runs the first prompt, and kills at the moment. Nothing of it runs any more when this is done. */
const killedAt = async (bench: Bench, moment: Moment, end: (signal: (name: NodeJS.Signals) => void) => void): Promise<Told> => {
  let send: (name: NodeJS.Signals) => void = () => {}
  const atFirstText = firstText(end)
  const running = bench.run({
    task: first,
    scenario: moment === "said a word" ? { type: "hang" } : { type: "wait", at: "headers" },
    args: session,
    onEvent: (event, signal) => {
      send = signal
      if (moment === "said a word") atFirstText(event, signal)
      // There is one of them.
      if (moment === "named the session" && event.type === "session_start") end(signal)
    }
  })
  if (moment === "asked its model") {
    await bench.asked(first)
    end((name) => send(name))
  }
  const told = await running
  await eventually("what is left of the first run", bench.processes, (left) => left.length === 0)
  return told
}

/**
 * That the run after a kill goes on with what the CLI has written down, and says
 * what that may lack. `ending` is how the first turn stands in Turnpike's log.
 */
const goesOn = (kept: Kept, ending: string) => async (told: Told, bench: Bench): Promise<void> => {
  const held = await heldOf(bench, "one")
  assert.deepStrictEqual([held.prompts, held.endings, held.waiting], [[first, second], [ending, "completed"], 0])
  const isNative = told.result?.session.resumed === "native"
  assert.deepStrictEqual(
    history(told),
    isNative ? { resumed: "native", notices: ["turn_in_doubt"] } : { resumed: "fresh", notices: ["fresh_session"] }
  )
  const sent = await bench.prompts()
  const isWhole = isNative && isWritten(kept.histories(bench), "KINGFISHER") && !(kept.mayForget && sent.length === 1)
  assert.deepStrictEqual(sent, isWhole ? [first, second] : [second])
}

const killedEarly = (kept: Kept): ReadonlyArray<Row> =>
  kept.kills.map(([who, moment]): Row => ({
    name: who === "Turnpike"
      ? `Turnpike is killed once ${kept.product} has ${moment}, and the session goes on`
      : `${kept.product} is killed once it has ${moment}, and the session goes on`,
    cell: success,
    play: async (bench) => {
      const told = await killedAt(bench, moment, (signal) => who === "Turnpike" ? signal("SIGKILL") : kill(bench, kept.cli, kept.argument))
      if (who === "Turnpike") assert.deepStrictEqual([told.exit, told.result], [null, undefined])
      else assert.deepStrictEqual(cellOf(told, undefined), failed("HARNESS_FAILED"))
      return goOn(bench)
    },
    also: goesOn(kept, who === "Turnpike" ? "interrupted" : "HARNESS_FAILED")
  }))

/** `renaming` is the CLI, except that it continues a session under an id of its own choice. */
export const renamed = ({ product }: Kept, renaming: (bench: Bench) => string): Row => ({
  name: `a session that ${product} continues under another id`,
  cell: success,
  play: async (bench) => {
    await begin(bench)
    return bench.run({ task: second, args: session, program: renaming(bench) })
  },
  also: async (told, bench) => {
    assert.deepStrictEqual(history(told), { resumed: "native", notices: ["rebound"] })
    assert.deepStrictEqual(await bench.prompts(), [first, second])
    const { ids } = await heldOf(bench, "one")
    const id = ids.at(-1) ?? ""
    assert.deepStrictEqual([ids.length, ids[0] !== id, told.result?.session.harness_session_id], [2, true, id])
    assert.include(noticesOf(told, "rebound").join(), id)
    const next = await bench.run({ task: third, args: session })
    assert.deepStrictEqual([history(next), next.result?.session.harness_session_id], [native, id])
    assert.deepStrictEqual(await bench.prompts(), [first, second, third])
  }
})

/** Those that hold for every CLI. */
export const resumeRows = (kept: Kept): ReadonlyArray<Row> => [...lost(kept), ...killedEarly(kept)]
