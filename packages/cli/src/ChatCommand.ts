/**
 * `turnpike chat`: one warm session, turn after turn.
 */
import { Outlet, Style } from "@turnpike/channel-terminal"
import type { Harness } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Given, one } from "./CommandLine.ts"
import * as Composition from "./Composition.ts"
import * as EventsChat from "./EventsChat.ts"
import * as HarnessChoice from "./HarnessChoice.ts"
import * as Program from "./Program.ts"
import { fromFailure, refuse, type Refusal } from "./Refusal.ts"
import * as Signals from "./Signals.ts"
import * as SpecInput from "./SpecInput.ts"
import * as TextChat from "./TextChat.ts"
import * as Version from "./Version.ts"

/** Stands where a specification needs a task; each prompt takes its place. */
const noTaskYet = "(the prompts of a conversation)"

const told = (report: Harness.CloseReport): ReadonlyArray<string> => [
  ...report.backgroundKilled.map((task) => `background task ended: ${task.description ?? task.id}`),
  ...report.killed.map((process) => `killed: ${process.pid} ${process.command}`),
  ...report.survivors.map((process) => `still running: ${process.pid} ${process.command}`),
  ...report.problems
]

const command = (given: Given): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const isText = (one(given, "format") ?? (process.stdin.isTTY || process.stdout.isTTY ? "text" : "events")) === "text"
    if (isText && one(given, "timeout") !== undefined) {
      return yield* refuse("USAGE", "--timeout is for --format events", { remedy: "Leave out --timeout; Ctrl-C ends a turn." })
    }
    const out = Outlet.make(process.stdout, "standard output")
    const err = Outlet.make(process.stderr, "standard error")
    const version = Version.read()

    const opening = Effect.gen(function*() {
      const spec = yield* SpecInput.make(given, noTaskYet, (unnamed) => HarnessChoice.choose({ given, ...unnamed }))
      const redact = Composition.redactor(spec)
      const person = isText ? TextChat.person(redact) : undefined
      const supervisor = yield* Supervisor.make({ environment: Composition.environment(), redact, reapOrphans: false })
      const prepared = yield* Composition.prepare({ command: "chat", given, spec, ask: person?.ask, redact }).pipe(
        Effect.provideService(Supervisor.Supervisor, supervisor)
      )
      const session = yield* Effect.mapError(prepared.harness.open(prepared.options), (error) => fromFailure(error.failure))
      return { prepared, session, person, redact }
    })
    const left = yield* Deferred.make<130 | 143>()
    const signals = yield* Signals.listen((signal) =>
      Effect.as(Deferred.succeed(left, signal === "interrupt" ? 130 : 143), { isHard: true })
    )
    const opened = yield* Effect.raceFirst(opening, Deferred.await(left))
    if (typeof opened === "number") {
      Composition.say("turnpike: stopped before the conversation began")
      return opened
    }
    const { person, prepared, redact, session } = opened
    yield* Effect.forkScoped(Composition.reap(redact))

    const code = yield* (person === undefined
      ? EventsChat.run({ prepared, session, out, version, signals })
      : TextChat.run({ prepared, session, person, out, err, style: Style.choose(err.isTerminal, process.env), version, signals }))
    for (const line of told(yield* session.close)) Composition.say(redact(`turnpike: ${line}`))
    return code
  })

export const main = (given: Given): Promise<number> => Program.run(command(given))
