/**
 * Chooses the agent where the caller named none: the only one that can be used
 * here. It starts no turn and spends no token.
 */
import type { Scalars } from "@turnpike/contract"
import { type Harness, Redaction } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type Given, one } from "./CommandLine.ts"
import * as Composition from "./Composition.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as FileSessionBindings from "./FileSessionBindings.ts"
import * as HarnessRegistry from "./HarnessRegistry.ts"
import { fromFailure, refuse, type Refusal } from "./Refusal.ts"

/** What is known of the run before its harness is. */
export interface Wish {
  readonly given: Given
  /** Variables for the harness, which may sign it in. */
  readonly env: Readonly<Record<string, string>>
  readonly sessionId: Scalars.SessionId | undefined
}

/** How long an agent's program may take to say what it is: 15 s. They are asked at the same time. */
const patience = "15 seconds"

/** All but the one for demonstrations. */
const agents = HarnessRegistry.names.filter((name) => name !== "scripted")

const look = (name: string, wish: Wish): Effect.Effect<Harness.Diagnosis, Refusal, Supervisor.Supervisor> =>
  Effect.gen(function*() {
    const harness = yield* HarnessRegistry.load(name)
    const program = one(wish.given, "program")
    const diagnosis = yield* Effect.timeoutOption(
      harness.diagnose({
        program: program === undefined ? undefined : Composition.located(program),
        inheritedEnv: { ...Composition.environment(), ...wish.env },
        cwd: process.cwd()
      }),
      patience
    )
    return Option.getOrElse(diagnosis, (): Harness.Diagnosis => ({
      harness: name,
      usable: false,
      findings: [{ level: "problem", message: `its program did not answer within ${patience}` }]
    }))
  })

/** Why an agent cannot be used, in a few words: `doctor` has the whole of it. */
const why = ({ findings }: Harness.Diagnosis): string => {
  const problem = findings.find(({ level }) => level === "problem")
  switch (problem?.code) {
    case "HARNESS_NOT_FOUND":
      return "not found"
    case "HARNESS_NOT_A_HARNESS":
      return "the program is another one"
    default:
      return Redaction.head((problem?.message ?? "cannot be used").split("\n", 1)[0] ?? "", 160)
  }
}

/** One agent's state, as the part of a sentence. */
const stateOf = (diagnosis: Harness.Diagnosis): string =>
  `${diagnosis.harness}${diagnosis.version === undefined ? "" : ` ${diagnosis.version}`}: ${diagnosis.usable ? "can be used" : why(diagnosis)}`

/** The harness that a session was begun with, where it is remembered. */
const ofSession = (wish: Wish): Effect.Effect<string | undefined, Refusal> =>
  wish.sessionId === undefined ? Effect.succeed(undefined) : FileSessionBindings.harnessOf(
    DataDirectory.choose(one(wish.given, "data-dir"), Composition.environment()).directory,
    wish.sessionId
  ).pipe(Effect.mapError((error) => fromFailure(error.failure)))

/**
 * Answers the harness of the session that is to go on, else the only agent that
 * can be used, and tells which and why on standard error. Fails with `USAGE`
 * where several can be used, and with `HARNESS_NOT_FOUND` where none can, naming
 * each and its state.
 */
export const choose = (wish: Wish): Effect.Effect<string, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const known = yield* ofSession(wish)
    if (known !== undefined) return known
    const redact = Composition.redactor()
    const supervisor = yield* Supervisor.make({ environment: Composition.environment(), redact, reapOrphans: false })
    const all = yield* Effect.forEach(agents, (name) => look(name, wish), { concurrency: "unbounded" }).pipe(
      Effect.provideService(Supervisor.Supervisor, supervisor)
    )
    const usable = all.filter((each) => each.usable)
    const states = all.map(stateOf).join("; ")
    const [only, ...more] = usable
    if (only === undefined) {
      return yield* refuse("HARNESS_NOT_FOUND", `no agent can be used here, and --harness names none: ${states}`, {
        remedy: "`turnpike doctor` says what to do for each; `--harness scripted` is a demonstration that needs none."
      })
    }
    if (more.length > 0) {
      return yield* refuse("USAGE", `several agents can be used here, and --harness names none: ${states}`, {
        remedy: `Choose one: ${usable.map(({ harness }) => `--harness ${harness}`).join(", or ")}.`
      })
    }
    const others = all.filter((each) => !each.usable).map(stateOf).join("; ")
    Composition.say(redact(`turnpike: runs on ${only.harness}${only.version === undefined ? "" : ` ${only.version}`}, the only agent that can be used here (${others})`))
    return only.harness
  })
