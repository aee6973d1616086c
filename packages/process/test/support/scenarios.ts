/**
 * What a supervisor is put through, in every containment, by every user and
 * runtime. A scenario answers facts; `expectations.ts` says which are right.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Child, KillReport } from "../../src/Child.ts"
import type { Command } from "../../src/Command.ts"
import type { Strategy } from "../../src/Containment.ts"
import type { Line } from "../../src/Line.ts"
import type { ProcessError } from "../../src/ProcessError.ts"
import type { Service } from "../../src/Supervisor.ts"
import * as Specimens from "./specimens.ts"

export interface Stage {
  readonly supervisor: Service
  readonly strategy: Strategy
  /** This scenario's own directory. */
  readonly directory: string
  /** Starts `sh -c script`, whose `$SPECIMEN_DIRECTORY` is the directory. */
  readonly shell: (script: string, more?: Partial<Command>) => Effect.Effect<Child, ProcessError, Scope.Scope>
}

export type Facts = { readonly [name: string]: unknown }
export type Scenario = (stage: Stage) => Effect.Effect<Facts, ProcessError, Scope.Scope>

/** Hardly waits for a program that ignores TERM. */
export const fast = { closeLadder: [{ signal: "SIGTERM", waitMs: 100 }] } as const

/** Waits until `condition` holds, looking every 10 ms. Answers whether it did within the bound. */
export const eventually = (condition: () => boolean, boundMs = 10_000): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    const deadline = performance.now() + boundMs
    while (!condition()) {
      if (performance.now() > deadline) return false
      yield* Effect.sleep(10)
    }
    return true
  })

/** "plain" is in the program's group: whether TERM ended it before KILL came is the machine's business. */
const killedBeyondGroup = (directory: string, report: KillReport) => Specimens.names(directory, report.killed).filter((name) => name !== "plain")

const text = (line: Line): string => line._tag === "Text" ? line.text : line._tag

const firstLine = (child: Child) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    yield* child.lines.pipe(Stream.runForEach((line) => Effect.sync(() => lines.push(text(line)))), Effect.forkScoped)
    yield* eventually(() => lines.length > 0)
    return lines
  })

const allLines = (child: Child) => Effect.map(Stream.runCollect(child.lines), (lines) => lines.map(text))

/** Waits until specimens of these names are alive. */
export const started = (stage: Stage, expected: ReadonlyArray<string>) =>
  eventually(() => {
    const running = Specimens.names(stage.directory, Specimens.alive(stage.directory))
    return expected.every((name) => running.includes(name))
  })

/** What a shell starts a specimen with that holds none of its pipes. */
export const quietTail = (name: string) => `tail -f "$SPECIMEN_DIRECTORY/${name}" </dev/null >/dev/null 2>&1 &`

const reasonOf = (effect: Effect.Effect<unknown, ProcessError, Scope.Scope>) =>
  Effect.match(effect, { onFailure: (error) => `${error.reason._tag}: ${error.message}`, onSuccess: () => "started" })

export const scenarios = {
  exits: Effect.fnUntraced(function*(stage: Stage) {
    const exits: Array<unknown> = []
    for (const script of ["exit 0", "exit 7", "kill -TERM $$", "kill -KILL $$"]) {
      const child = yield* stage.shell(script)
      exits.push(yield* child.exit)
    }
    return { exits }
  }),

  "both outputs": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("read -r line; echo \"out $line\"; [ \"$(pwd -P)\" = \"$SPECIMEN_DIRECTORY\" ] && echo there; echo \"err $line\" >&2; cat >/dev/null")
    yield* child.stdin.writeLine("naïve")
    yield* child.stdin.end
    yield* child.stdin.end
    const lines = yield* allLines(child)
    const exit = yield* child.exit
    const afterEnd = yield* reasonOf(child.stdin.write("more"))
    const { text: errors, totalBytes } = yield* child.stderr
    return { lines, errors, totalBytes, exit, afterEnd: afterEnd.split(":")[0], again: (yield* reasonOf(Stream.runDrain(child.lines))).split(":")[0] }
  }),

  "the end of standard error": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("i=0; while [ $i -lt 500 ]; do echo 'üüüüüüüüü' >&2; i=$((i + 1)); done", { stderrTailBytes: 100 })
    yield* Stream.runDrain(child.lines)
    yield* child.exit
    yield* child.close
    const tail = yield* child.stderr
    return { held: tail.bytes.length, totalBytes: tail.totalBytes, text: tail.text }
  }),

  "a ladder": Effect.fnUntraced(function*(stage: Stage) {
    const ended: Array<unknown> = []
    // A rung that is meant to fail is short, one that is meant to succeed is long enough for a busy machine.
    for (const [trap, int, term] of [["trap 'exit 5' INT", 5000, 5000], ["trap '' INT; trap 'exit 6' TERM", 100, 5000], ["trap '' INT TERM", 100, 100]] as const) {
      const child = yield* stage.shell(`${trap}; echo ready; while :; do sleep 0.02; done`)
      yield* firstLine(child)
      const { endedBy, exit } = yield* child.terminate([{ signal: "SIGINT", waitMs: int }, { signal: "SIGTERM", waitMs: term }])
      ended.push([endedBy, exit?.code ?? null, exit?.signal ?? null])
    }
    const over = yield* stage.shell("exit 0")
    yield* over.exit
    return { ended, over: yield* over.terminate(), signalledAfterwards: yield* over.signal("SIGTERM") }
  }),

  "a signal to the group": Effect.fnUntraced(function*(stage: Stage) {
    // The sleeping child dies of the signal itself, the program lives on: both got it.
    const child = yield* stage.shell("trap 'echo program' INT; (trap 'echo child; exit' INT; echo ready; while :; do sleep 0.02; done) & while :; do wait; sleep 0.02; done", fast)
    const lines = yield* firstLine(child)
    const sent = yield* child.signal("SIGINT")
    yield* eventually(() => lines.length >= 2)
    return { sent, programGotIt: lines.includes("program"), insideGroup: (yield* child.descendants).every((one) => one.insideGroup) }
  }),

  escapes: Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, Specimens.escaped)
    const child = yield* stage.shell(`${Specimens.escapes} trap '' INT TERM HUP; echo ready; while :; do sleep 0.05; done`, fast)
    yield* firstLine(child)
    yield* started(stage, Specimens.escaped)
    const seen = Specimens.names(stage.directory, yield* child.descendants)
    const report = yield* child.close
    return {
      seen,
      killed: killedBeyondGroup(stage.directory, report),
      survivors: report.survivors,
      suspects: Specimens.names(stage.directory, report.suspects),
      exit: report.exit,
      alive: Specimens.alive(stage.directory),
      same: report === (yield* child.close)
    }
  }),

  "a child that ends when it is asked": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["asked"])
    const child = yield* stage.shell("tail -f \"$SPECIMEN_DIRECTORY/asked\" & trap 'wait $!; exit 7' TERM; echo ready; while :; do sleep 0.05; done", {
      closeLadder: [{ signal: "SIGTERM", waitMs: 5000 }]
    })
    yield* firstLine(child)
    yield* started(stage, ["asked"])
    const { exit, killed } = yield* child.close
    return { exit, killed, alive: Specimens.alive(stage.directory) }
  }),

  "the end of a scope": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, Specimens.escaped)
    const child = yield* Effect.scoped(Effect.gen(function*() {
      const child = yield* stage.shell(`${Specimens.escapes} trap '' TERM; while :; do sleep 0.05; done`, fast)
      yield* started(stage, Specimens.escaped)
      return child
    }))
    const alive = Specimens.alive(stage.directory)
    return { alive, killed: killedBeyondGroup(stage.directory, yield* child.close) }
  }),

  "an interruption": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, Specimens.escaped)
    const fiber = yield* Effect.forkChild(Effect.scoped(Effect.andThen(
      stage.shell(`${Specimens.escapes} while :; do sleep 0.05; done`, fast),
      Effect.never
    )))
    yield* started(stage, Specimens.escaped)
    yield* Fiber.interrupt(fiber)
    // And at once, before the program can have begun.
    const early = yield* Effect.forkChild(Effect.scoped(Effect.andThen(stage.shell(Specimens.escapes, fast), Effect.never)), { startImmediately: true })
    yield* Fiber.interrupt(early)
    // And when the program was done with starting others before its owner could look.
    for (let round = 0; round < 5; round++) yield* Effect.scoped(Effect.flatMap(stage.shell(Specimens.escapes, fast), (child) => child.exit))
    return { alive: Specimens.alive(stage.directory) }
  }),

  "a program that leaves its children": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["left"])
    const child = yield* stage.shell(`${quietTail("left")} echo out; exit 3`)
    const exit = yield* child.exit
    yield* started(stage, ["left"])
    const lines = yield* allLines(child)
    const descendants = Specimens.names(stage.directory, yield* child.descendants)
    const report = yield* child.close
    return { exit, lines, descendants, killed: Specimens.names(stage.directory, report.killed), alive: Specimens.alive(stage.directory) }
  }),

  "a grandchild that holds the output": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["holder"])
    const child = yield* stage.shell("setsid tail -f \"$SPECIMEN_DIRECTORY/holder\" & echo out; exit 0")
    const exit = yield* child.exit
    const lines = yield* allLines(child)
    yield* started(stage, ["holder"])
    const report = yield* child.close
    return { exit, lines, outputHeld: report.outputHeld, killed: Specimens.names(stage.directory, report.killed), alive: Specimens.alive(stage.directory) }
  }),

  "work that ends after the program": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("(sleep 0.1; echo late) & echo out; exit 0")
    const exit = yield* child.exit
    const lines = yield* allLines(child)
    // A process closes its output a moment before it is gone.
    yield* eventually(() => Specimens.alive(stage.directory).length === 0)
    const report = yield* child.close
    return { exit, lines, outputHeld: report.outputHeld, killed: report.killed }
  }),

  "input that is not read": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("exit 4")
    const written = yield* reasonOf(child.stdin.write("x".repeat(2 * 1024 * 1024)))
    return { written: written.split(":")[0], exit: yield* child.exit }
  }),

  "input that waits": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("while [ ! -e \"$SPECIMEN_DIRECTORY/gate\" ]; do sleep 0.02; done; wc -c")
    // The pipe takes some; the rest waits for the reader.
    const early = yield* child.stdin.write("x".repeat(4 * 1024 * 1024)).pipe(Effect.forkScoped({ startImmediately: true }))
    yield* Effect.sleep(100)
    const waiting = early.pollUnsafe() === undefined
    fs.writeFileSync(path.join(stage.directory, "gate"), "")
    yield* Fiber.join(early)
    yield* child.stdin.end
    return { waiting, lines: yield* allLines(child), exit: yield* child.exit }
  }),

  "a prompt of 2 MB": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("wc -c | tr -d ' '")
    yield* child.stdin.write("é".repeat(1024 * 1024))
    yield* child.stdin.end
    return { lines: yield* allLines(child), exit: yield* child.exit }
  }),

  "bytes one by one": Effect.fnUntraced(function*(stage: Stage) {
    const content = Buffer.concat([
      Buffer.from("grüße 日本語 😀\n\r\na\u2028b\u2029c\u0085d\0e\f\v\n"),
      // A log line within a character, as two writers on one pipe make it.
      Buffer.from([0xe4]),
      Buffer.from("log\n"),
      Buffer.from([0xbb, 0xb6, 10]),
      Buffer.from("\n\ufeffbom\nend")
    ])
    fs.writeFileSync(path.join(stage.directory, "content"), content)
    const child = yield* stage.shell("dd if=\"$SPECIMEN_DIRECTORY/content\" bs=1 2>/dev/null")
    const lines = yield* Stream.runCollect(child.lines)
    return {
      lines: lines.map((line) => line._tag === "InvalidUtf8" ? ["InvalidUtf8", [...line.bytes], line.terminated] : [line._tag, text(line), line.terminated])
    }
  }),

  "a line over the bound": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("echo before; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after", { maxLineBytes: 100_000 })
    const lines = yield* Stream.runCollect(child.lines)
    return {
      lines: lines.map((line) => line._tag === "Oversize" ? [line._tag, line.bytesTotal, Buffer.from(line.head).toString() === "x".repeat(4096)] : [line._tag, text(line)]),
      exit: yield* child.exit
    }
  }),

  "output that is not read": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("exec yes", fast)
    let leader: number | undefined
    while (leader === undefined) leader = (yield* child.leader)?.pid
    const written = () => Number(/^wchar: (\d+)/m.exec(fs.readFileSync(`/proc/${leader}/io`, "utf8"))?.[1])
    let before = -1
    const stopped = yield* eventually(() => {
      const now = written()
      const same = now === before && now > 4096
      before = now
      return same
    })
    return { stopped, bounded: written() < 2 * 1024 * 1024 }
  }),

  "a turn": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["before", "born", "daemon", "spared", "stubborn"])
    const child = yield* stage.shell(
      `${quietTail("before")} read -r go; ${quietTail("born")} (setsid ${quietTail("daemon")}) ; ${quietTail("spared")}
       (trap '' TERM; exec tail -f "$SPECIMEN_DIRECTORY/stubborn" </dev/null >/dev/null 2>&1) & echo ready; exec cat >/dev/null`,
      fast
    )
    yield* started(stage, ["before"])
    const mark = yield* child.mark
    yield* child.stdin.writeLine("go")
    yield* started(stage, ["born", "daemon", "spared", "stubborn"])
    const report = yield* child.killBornSince(mark, { spare: (one) => one.command.endsWith("/spared"), graceMs: 300 })
    const left = Specimens.names(stage.directory, Specimens.alive(stage.directory))
    const running = (yield* child.leader) !== undefined
    yield* child.close
    return {
      killed: Specimens.names(stage.directory, report.killed),
      survivors: report.survivors,
      left,
      running,
      alive: Specimens.alive(stage.directory)
    }
  }),

  "a containment that is killed from outside": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, Specimens.escaped)
    const child = yield* stage.shell(`${Specimens.escapes} while :; do sleep 0.05; done`, fast)
    yield* started(stage, Specimens.escaped)
    process.kill(child.pid, "SIGKILL")
    const exit = yield* child.exit
    const report = yield* child.close
    return { signal: exit.signal, survivors: report.survivors, alive: Specimens.alive(stage.directory) }
  }),

  orphans: Effect.fnUntraced(function*(stage: Stage) {
    // Two hundred processes lose their parent and end; in a namespace its first process collects them.
    const child = yield* stage.shell(`i=0; while [ $i -lt 200 ]; do (true & true &) ; i=$((i + 1)); done
      i=0; while [ $i -lt 100 ]; do
        zombies=$(grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l); [ "$zombies" = 0 ] && break; i=$((i + 1)); sleep 0.05
      done; echo "zombies $zombies"`, fast)
    const lines = yield* allLines(child)
    return { lines: stage.strategy === "group" ? "not ours to collect" : lines }
  }),

  "an escape without a trace": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["gone"])
    // Empty environment, a session whose leader is dead, no shared pipe, no parent.
    const child = yield* stage.shell(
      "(env -i setsid sh -c 'tail -f \"$0\" &' \"$SPECIMEN_DIRECTORY/gone\" </dev/null >/dev/null 2>&1 &); while :; do sleep 0.05; done",
      fast
    )
    yield* started(stage, ["gone"])
    yield* eventually(() => Specimens.alive(stage.directory).every(({ command }) => !command.startsWith("sh -c tail")))
    const report = yield* child.close
    const left = Specimens.alive(stage.directory)
    Specimens.end(left)
    const killed = Specimens.names(stage.directory, report.killed)
    const suspects = Specimens.names(stage.directory, report.suspects)
    return {
      told: [...killed, ...suspects],
      // Either it was held, or it is alive and told of.
      truthful: Specimens.names(stage.directory, left).join() === suspects.join(),
      held: stage.strategy === "group" ? "not promised" : suspects.length === 0,
      survivors: report.survivors
    }
  }),

  "work handed to a daemon": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["elsewhere"])
    // The daemon is not the command's descendant: another supervised program stands for docker or tmux.
    const daemon = yield* stage.shell("while [ ! -e \"$SPECIMEN_DIRECTORY/order\" ]; do sleep 0.02; done; exec tail -f \"$SPECIMEN_DIRECTORY/elsewhere\"", fast)
    const child = yield* stage.shell("echo order >\"$SPECIMEN_DIRECTORY/order\"; while :; do sleep 0.05; done", fast)
    yield* started(stage, ["elsewhere"])
    const report = yield* child.close
    const left = Specimens.names(stage.directory, Specimens.alive(stage.directory))
    yield* daemon.close
    return {
      left,
      killed: Specimens.names(stage.directory, report.killed),
      survivors: report.survivors,
      suspects: Specimens.names(stage.directory, report.suspects),
      alive: Specimens.alive(stage.directory)
    }
  }),

  environment: Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.supervisor.spawn({
      program: "env",
      args: ["-0"],
      cwd: stage.directory,
      containment: stage.strategy,
      env: { PLAIN: "set", HOME: undefined, CLAUDE_CODE_ENTRYPOINT: "ours", [Specimens.variable]: stage.directory }
    })
    const [line] = yield* Stream.runCollect(child.lines)
    const variables = new Map((line?._tag === "Text" ? line.text : "").split("\0").map((entry) => {
      const equals = entry.indexOf("=")
      return [entry.slice(0, equals), entry.slice(equals + 1)] as const
    }))
    return {
      set: variables.get("PLAIN"),
      ours: variables.get("CLAUDE_CODE_ENTRYPOINT"),
      removed: ["HOME", "CLAUDECODE", "CLAUDE_CODE_SSE_PORT", "CODEX_SANDBOX", "COPILOT_CLI"].filter((name) => variables.has(name)),
      kept: variables.get("CODEX_HOME"),
      tags: [...variables.keys()].filter((name) => name.startsWith("TESTOWNER_")).length
    }
  }),

  refusals: Effect.fnUntraced(function*(stage: Stage) {
    const at = (name: string) => path.join(stage.directory, name)
    fs.writeFileSync(at("plain"), "echo no\n", { mode: 0o644 })
    fs.writeFileSync(at("script"), "#!/no/such/interpreter\n", { mode: 0o755 })
    const base = { cwd: stage.directory, containment: stage.strategy }
    const commands: Record<string, Command> = {
      "not in PATH": { ...base, program: "no-such-program" },
      "no such path": { ...base, program: "./no-such-program" },
      "a directory": { ...base, program: stage.directory },
      "not executable": { ...base, program: at("plain") },
      "no interpreter": { ...base, program: "./script" },
      "no directory": { ...base, program: "sh", cwd: at("nowhere") },
      "not a directory": { ...base, program: "sh", cwd: at("plain") },
      "one long argument": { ...base, program: "sh", args: ["-c", "exit", "x".repeat(200_000)] },
      "a NUL": { ...base, program: "sh", args: ["-c", "a\0b"] },
      "a bad name": { ...base, program: "sh", env: { "A=B": "c" } },
      "no bound": { ...base, program: "sh", maxLineBytes: 0 }
    }
    const answers: Record<string, string> = {}
    for (const [name, command] of Object.entries(commands)) {
      answers[name] = (yield* reasonOf(Effect.scoped(stage.supervisor.spawn(command))))
        .replaceAll(stage.directory, "DIR").replace(/in PATH \(.*?\)/, "in PATH (…)").replace(/\d+ bytes of arguments and \d+/, "N bytes of arguments and M").replace(/for \/\S*sh;/, "for sh;")
    }
    return answers
  })
} satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof scenarios

/** What the memory of this process grows by, at most, while an effect runs; in MiB. */
const growth = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const before = process.memoryUsage().rss
    let most = before
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss)
    }, 20)
    const answer = yield* Effect.ensuring(effect, Effect.sync(() => clearInterval(timer)))
    return { answer, mebibytes: (most - before) / 1024 / 1024 }
  })

/** Those that take seconds and much memory bandwidth. */
export const heavyScenarios = {
  "300 MB to a slow reader": Effect.fnUntraced(function*(stage: Stage) {
    const line = "0123456789".repeat(100)
    const child = yield* stage.shell(`yes ${line} | head -c 300300000`)
    let count = 0
    let wrong = 0
    const { mebibytes } = yield* growth(child.lines.pipe(Stream.runForEachArray((lines) => {
      count += lines.length
      for (const one of lines) if (text(one) !== line) wrong++
      return Effect.sleep(1)
    })))
    return { count, wrong, memoryFlat: mebibytes < 120 || `grew by ${mebibytes} MiB`, exit: yield* child.exit }
  }),

  "a line of 200 MB": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("echo before; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo after", { maxLineBytes: 8 * 1024 * 1024 })
    const { answer, mebibytes } = yield* growth(Stream.runCollect(child.lines))
    return {
      lines: answer.map((one) => one._tag === "Oversize" ? [one._tag, one.bytesTotal, one.head.length] : [one._tag, text(one)]),
      memoryBounded: mebibytes < 128 || `grew by ${mebibytes} MiB`,
      exit: yield* child.exit
    }
  }),

  "a line of 30 MB": Effect.fnUntraced(function*(stage: Stage) {
    const child = yield* stage.shell("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo after")
    const lines = yield* Stream.runCollect(child.lines)
    return { lines: lines.map((one) => [one._tag, text(one).length]) }
  }),

  "two hundred in a row": Effect.fnUntraced(function*(stage: Stage) {
    const descriptors = () => fs.readdirSync("/proc/self/fd").length
    const once = Effect.scoped(Effect.flatMap(stage.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done", { closeLadder: [{ signal: "SIGTERM", waitMs: 1 }] }), (child) => child.leader))
    for (let round = 0; round < 5; round++) yield* once
    const before = descriptors()
    for (let round = 0; round < 200; round++) yield* once
    yield* eventually(() => descriptors() <= before, 5000)
    return { leaked: Math.max(0, descriptors() - before), alive: Specimens.alive(stage.directory) }
  })
} satisfies Record<string, Scenario>

export type HeavyScenarioName = keyof typeof heavyScenarios
