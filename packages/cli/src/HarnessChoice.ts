/**
 * Chooses the agent where the caller named none: the only one that can be used
 * here. It starts no turn and spends no token.
 */
import type { Scalars } from "@turnpike/contract"
import { type Harness, Redaction } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Given, one } from "./CommandLine.ts"
import * as Composition from "./Composition.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as HarnessDiagnosis from "./HarnessDiagnosis.ts"
import * as HarnessRegistry from "./HarnessRegistry.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import * as Store from "./Store.ts"

/** What is known of the run before its harness is. */
export interface Wish {
  readonly given: Given
  /** Variables for the harness, which may sign it in. */
  readonly env: Readonly<Record<string, string>>
  readonly sessionId: Scalars.SessionId | undefined
  /** Whether the session has to exist. */
  readonly isContinued: boolean
}

const { agents } = HarnessRegistry

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

/** What to type for an agent that is there and cannot be used. */
const remedyOf = ({ findings, harness, version }: Harness.Diagnosis): ReadonlyArray<string> => {
  const remedy = findings.find(({ level }) => level === "problem")?.remedy
  return version === undefined || remedy === undefined ? [] : [`For ${harness}: ${remedy}`]
}

/** The harness that a session was begun with; `undefined` where nothing is remembered of it and it need not exist. */
const ofSession = ({ given, isContinued, sessionId }: Wish): Effect.Effect<string | undefined, Refusal> =>
  Effect.gen(function*() {
    if (sessionId === undefined) return undefined
    const choice = DataDirectory.choose(one(given, "data-dir"), Composition.environment())
    const refusal = DataDirectory.refusal(choice)
    if (refusal !== undefined) return yield* refusal
    const known = yield* Store.harnessOf(choice.directory, sessionId)
    if (known === undefined && isContinued) {
      return yield* refuse("SESSION_UNKNOWN", `there is no session ${sessionId} to continue`, { data: { session_id: sessionId } })
    }
    return known
  })

/**
 * Answers the harness of the session that is to go on, else the only agent that
 * can be used, and tells which and why on standard error. Fails with `USAGE`
 * where several can be used, or none, naming each, its state and what to type;
 * with `SESSION_UNKNOWN` for a session that has to exist and does not.
 */
export const choose = (wish: Wish): Effect.Effect<string, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const known = yield* ofSession(wish)
    if (known !== undefined) return known
    const redact = Composition.redactor()
    const supervisor = yield* Supervisor.make({ environment: Composition.environment(), redact, reapOrphans: false })
    const asked = { program: one(wish.given, "program"), env: wish.env }
    const all = yield* Effect.forEach(
      agents,
      (name) => Effect.flatMap(HarnessRegistry.load(name), (harness) => HarnessDiagnosis.make(harness, asked)),
      { concurrency: "unbounded" }
    ).pipe(Effect.provideService(Supervisor.Supervisor, supervisor))
    const usable = all.filter((each) => each.usable)
    const [only, ...more] = usable
    if (only === undefined) {
      return yield* refuse("USAGE", `no agent can be used here, and --harness names none: ${all.map(stateOf).join("; ")}`, {
        remedy: [
          ...all.flatMap(remedyOf),
          "`turnpike doctor` says what to do for each; `--harness scripted` is a demonstration that needs none."
        ].join(" ")
      })
    }
    if (more.length > 0) {
      return yield* refuse("USAGE", `several agents can be used here, and --harness names none: ${all.map(stateOf).join("; ")}`, {
        remedy: `Choose one: ${usable.map(({ harness }) => `--harness ${harness}`).join(", or ")}.`
      })
    }
    const others = all.filter((each) => !each.usable).map(stateOf).join("; ")
    Composition.say(redact(`turnpike: runs on ${only.harness}${only.version === undefined ? "" : ` ${only.version}`}, the only agent that can be used here (${others})`))
    return only.harness
  })
