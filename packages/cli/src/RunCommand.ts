/**
 * `turnpike run`: one task on one harness.
 */
import { type AgentRunEvent, type AgentRunResult, Verdict } from "@turnpike/contract"
import { KeyboardInput, Outlet, Screen, ShownRequests, Style, TerminalPermission, TurnText } from "@turnpike/channel-terminal"
import { Cancel, type ChannelError, type Permission, Run, type RunStream } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { type Given, one } from "./CommandLine.ts"
import * as Composition from "./Composition.ts"
import * as HarnessChoice from "./HarnessChoice.ts"
import * as InputText from "./InputText.ts"
import * as Program from "./Program.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import * as ResultFile from "./ResultFile.ts"
import * as Signals from "./Signals.ts"
import * as SpecInput from "./SpecInput.ts"
import * as Version from "./Version.ts"

export type Format = "text" | "events" | "summary"

/** How long a turn that was asked to end may take: 10 s. Interrupting again is quicker. */
export const graceMillis = 10_000

/** The format that flags choose, else text on a terminal and events elsewhere. */
const format = (given: Given): Effect.Effect<Format, Refusal> => {
  const chosen = one(given, "format") as Format | undefined
  const json = one(given, "json")
  if (chosen !== undefined && json !== undefined) {
    return Effect.fail(refuse("USAGE", "--format and --json each give the format", { remedy: "Leave out --json." }))
  }
  return Effect.succeed(chosen ?? (json === undefined ? (process.stdout.isTTY ? "text" : "events") : json === "true" ? "events" : "summary"))
}

/** What shows a run while it runs, and delivers what came of it. */
interface Presentation {
  readonly sink: RunStream.Sink
  readonly deliver: "stream" | "caller"
  /** Runs beside the run. */
  readonly beside: Effect.Effect<void, never, Scope.Scope>
  /** Tells a person something beside the run. */
  readonly note: (sentence: string) => Effect.Effect<void>
  /** Tells the result, where the stream does not carry it. */
  readonly finish: (result: AgentRunResult.AgentRunResult) => Effect.Effect<void, ChannelError.ChannelError>
}

const noted = (sentence: string) => Effect.sync(() => Composition.say(`turnpike: ${sentence}`))

const events = (out: Outlet.Outlet, hasResultFile: boolean): Presentation => ({
  sink: (event: AgentRunEvent.AgentRunEvent) => out.write(`${JSON.stringify(event)}\n`),
  deliver: hasResultFile ? "caller" : "stream",
  beside: Effect.void,
  note: noted,
  finish: () => out.flush
})

const summary = (out: Outlet.Outlet): Presentation => ({
  sink: () => Effect.void,
  deliver: "caller",
  beside: Effect.void,
  note: noted,
  finish: (result) => Effect.andThen(out.write(`${TurnText.summary(result)}\n`), out.flush)
})

const text = (out: Outlet.Outlet, err: Outlet.Outlet, requests: ShownRequests.ShownRequests): Presentation => {
  const screen = Screen.make(out, err)
  const turn = TurnText.make(Style.choose(err.isTerminal, process.env))
  return {
    sink: (event) =>
      Effect.tap(screen.show(turn.add(event)), () =>
        event.type === "permission_request" ? requests.add(event.request_id) : Effect.void),
    deliver: "caller",
    beside: screen.watch(turn.activity),
    note: (sentence) => Effect.ignore(screen.show(turn.note(sentence))),
    finish: (result) =>
      screen.show(turn.end(TurnText.endingOf(result))).pipe(Effect.andThen(out.flush), Effect.andThen(Effect.ignore(err.flush)))
  }
}

/** The file of the result, which is none that this command reads. */
const resultOf = (given: Given, resultPath: string): Effect.Effect<ResultFile.ResultFile, Refusal, Scope.Scope> => {
  const same = ["task-file", "spec", "system-file"].find((flag) => {
    const input = one(given, flag)
    return input !== undefined && InputText.isSameFile(input, resultPath)
  })
  return same === undefined
    ? ResultFile.open(resultPath, noted(`waiting for a reader of ${resultPath}`))
    : Effect.fail(refuse("USAGE", `--result-file and --${same} name the same file, ${resultPath}`, {
      remedy: "Choose another --result-file: the result would take the place of what it came of."
    }))
}

const isAtTerminal = (chosen: Format): boolean =>
  chosen === "text" && process.stdin.isTTY === true && process.stderr.isTTY === true

const command = (given: Given, positional: string | undefined): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const cancel = yield* Cancel.make
    const escalate = Cancel.escalator(cancel)
    const chosen = yield* format(given)
    let note: (sentence: string) => Effect.Effect<void> = () => Effect.void
    const receive: Signals.Receive = (signal) =>
      Effect.flatMap(escalate(signal), ({ mode }) =>
        Effect.as(
          note(mode === "hard" ? "cutting the turn off" : "asking the agent to end its turn; interrupt again to cut it off"),
          { isHard: mode === "hard" }
        ))
    const signals = yield* Signals.listen(receive)
    const requests = ShownRequests.make()
    const out = Outlet.make(process.stdout, "standard output")
    const err = Outlet.make(process.stderr, "standard error")

    const preparation = Effect.gen(function*() {
      const spec = yield* SpecInput.make(given, positional, (unnamed) => HarnessChoice.choose({ given, ...unnamed }))
      const redact = Composition.redactor(spec)
      const resultPath = one(given, "result-file")
      const resultFile = resultPath === undefined ? undefined : yield* resultOf(given, resultPath)
      const ask: Permission.Decider | undefined = isAtTerminal(chosen)
        ? TerminalPermission.make({
          keyboard: KeyboardInput.make(process.stdin, process.stderr),
          redact,
          shown: requests.shown,
          interrupted: Effect.asVoid(receive("interrupt"))
        })
        : undefined
      const supervisor = yield* Supervisor.make({ environment: Composition.environment(), redact, reapOrphans: false })
      const prepared = yield* Composition.prepare({ command: "run", given, spec, ask, redact }).pipe(
        Effect.provideService(Supervisor.Supervisor, supervisor)
      )
      return { prepared, redact, resultFile }
    })
    const ready = yield* Effect.raceFirst(preparation, cancel.graceful)
    if ("cause" in ready) {
      Composition.say("turnpike: stopped before the run began; nothing was started")
      return Verdict.consequences({ type: "aborted", ...ready }).exitCode
    }
    const { prepared, redact, resultFile } = ready

    const presentation = chosen === "events"
      ? events(out, resultFile !== undefined)
      : chosen === "summary"
      ? summary(out)
      : text(out, err, requests)
    note = presentation.note
    const begun = yield* Deferred.make<void>()
    yield* Effect.forkScoped(Effect.andThen(Deferred.await(begun), Composition.reap(redact)))
    const result = yield* Effect.scoped(Effect.andThen(
      presentation.beside,
      Run.execute(prepared, {
        runId: randomUUID(),
        turnpikeVersion: Version.read(),
        sink: (event) => Effect.andThen(presentation.sink(event), Deferred.succeed(begun, undefined)),
        cancel,
        deliver: presentation.deliver,
        grace: graceMillis
      })
    ))
    yield* signals.finish
    const { exitCode } = Verdict.consequences(result.verdict)

    // The file first: it does not depend on somebody who reads.
    const written = resultFile === undefined ? undefined : yield* Effect.flip(resultFile.write(result)).pipe(Effect.option)
    const shown = yield* Effect.option(Effect.flip(presentation.finish(result)))
    if (written?._tag === "Some") {
      Composition.tell(written.value, redact)
      Composition.say(redact(`turnpike: the run itself: ${TurnText.summary(result)}`))
      return 1
    }
    if (shown._tag === "Some") {
      Composition.tell(refuse("OUTPUT_CLOSED", `${Composition.detail(shown.value)} before everything was told; the run ended as ${TurnText.word(result.verdict)}`), redact)
      return exitCode === 0 ? 1 : exitCode
    }
    return exitCode
  })

export const main = (given: Given, [positional]: ReadonlyArray<string>): Promise<number> =>
  Program.run(command(given, positional))
