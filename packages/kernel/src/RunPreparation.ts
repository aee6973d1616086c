/**
 * What has to hold before a run may start.
 *
 * Everything here happens before the run's first event: a refusal leaves
 * nothing started and nothing behind but its sentence.
 */
import { type AgentRunSpec, Failure, type Scalars } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Harness from "./Harness.ts"
import * as SessionBindings from "./SessionBindings.ts"

/** The run could not start. Nothing was started and nothing is left. */
export class RunRefused extends Schema.TaggedError<RunRefused>()("RunRefused", { failure: Failure.Failure }) {
  override get message() {
    return this.failure.message
  }
}

const refuse = (failure: Failure.Failure): RunRefused => new RunRefused({ failure })

const notAvailable = (field: string): RunRefused =>
  refuse(Failure.make("NOT_AVAILABLE", `${field} is not available in this version of Turnpike`, { data: { field } }))

/** The first field of a specification whose part does not exist yet. */
const unavailableField = (spec: AgentRunSpec.AgentRunSpec): string | undefined => {
  if (spec.recipe !== undefined) return "recipe"
  if (spec.input_artifacts !== undefined && spec.input_artifacts.length > 0) return "input_artifacts"
  if (spec.observability !== undefined && spec.observability.length > 0) return "observability"
  if (spec.limits?.token_budget !== undefined && spec.limits.token_budget !== null) return "limits.token_budget"
  if (spec.session?.resume === "replay") return "session.resume: replay"
  return undefined
}

export interface PrepareOptions {
  readonly spec: AgentRunSpec.AgentRunSpec
  readonly harness: Harness.Harness
  /** Used where the specification names no session. */
  readonly newSessionId: Scalars.SessionId
  /** What a session is opened with, apart from what the specification and the session's memory say. */
  readonly session: Omit<Harness.SessionOptions, "sessionId" | "resume">
}

/** A run that may start. Its session is held until the scope that prepared it closes. */
export interface Prepared {
  readonly spec: AgentRunSpec.AgentRunSpec
  readonly harness: Harness.Harness
  readonly options: Harness.SessionOptions
  readonly lease: SessionBindings.Lease
}

/**
 * Checks that a run can start: its fields, its session, its harness. Holds the
 * session from here on. Fails before anything was started.
 */
export const prepare = (
  options: PrepareOptions
): Effect.Effect<Prepared, RunRefused, SessionBindings.SessionBindings | Scope.Scope> =>
  Effect.gen(function*() {
    const { harness, spec } = options
    const field = unavailableField(spec)
    if (field !== undefined) return yield* notAvailable(field)
    const sessionId = spec.session?.id ?? options.newSessionId
    const bindings = yield* SessionBindings.SessionBindings
    const lease = yield* Effect.mapError(bindings.acquire(sessionId), (error) => refuse(error.failure))
    const known = Option.getOrUndefined(lease.binding)
    const policy = spec.session?.resume
    if (known === undefined && policy !== undefined) {
      return yield* refuse(
        Failure.make("SESSION_UNKNOWN", `there is no session ${sessionId} to continue`)
      )
    }
    if (known !== undefined && known.harness !== harness.name) {
      return yield* refuse(
        Failure.make("SESSION_MISMATCH", `session ${sessionId} belongs to ${known.harness}, not to ${harness.name}`)
      )
    }
    const sessionOptions: Harness.SessionOptions = {
      ...options.session,
      sessionId,
      resume: known?.harness_session_id === undefined ? undefined : {
        harnessSessionId: known.harness_session_id,
        // What the harness never wrote down cannot be lost.
        onLost: policy === "fresh" || !known.persisted ? "fresh" : "fail"
      }
    }
    yield* Effect.mapError(harness.check(sessionOptions), (error) => refuse(error.failure))
    return { spec, harness, options: sessionOptions, lease }
  }).pipe(Effect.withSpan("RunPreparation.prepare"))
