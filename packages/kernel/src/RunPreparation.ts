/**
 * What has to hold before a run may start.
 *
 * Everything here happens before the run's first event: a refusal leaves
 * nothing started and nothing behind but its sentence.
 */
import { type AgentRunSpec, Contracts, Failure, type Scalars } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Harness from "./Harness.ts"
import * as Redaction from "./Redaction.ts"
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

const decodeSpec = Contracts.decode("agent-run-spec")

/** What is wrong with a specification, whoever made it. */
const fault = (spec: AgentRunSpec.AgentRunSpec, harness: Harness.Harness): RunRefused | undefined => {
  if (typeof spec.task === "string" && spec.task.trim() === "") {
    return refuse(Failure.make("EMPTY_TASK", "the task is empty", { data: { field: "task" } }))
  }
  const decoded = decodeSpec(spec)
  if (Result.isFailure(decoded)) {
    return refuse(Failure.make("INVALID_SPEC", `the run's specification is refused: ${decoded.failure}`))
  }
  const field = unavailableField(spec)
  if (field !== undefined) return notAvailable(field)
  return spec.harness === harness.name ? undefined : refuse(
    Failure.make("INVALID_SPEC", `harness: the specification names ${spec.harness}, the run was given ${harness.name}`, {
      data: { field: "harness" }
    })
  )
}

export interface PrepareOptions {
  readonly spec: AgentRunSpec.AgentRunSpec
  readonly harness: Harness.Harness
  /** Used where the specification names no session. */
  readonly newSessionId: Scalars.SessionId
  /** What a session is opened with, apart from what the specification and the session's memory say. */
  readonly session: Omit<Harness.SessionOptions, "sessionId" | "resume">
}

/**
 * A run that may start. Its session is held until the scope that prepared it
 * closes. With a session that is kept open it may be executed again and again,
 * one turn after the other: `lease.binding` is then what was saved last.
 */
export interface Prepared {
  readonly spec: AgentRunSpec.AgentRunSpec
  readonly harness: Harness.Harness
  readonly options: Harness.SessionOptions
  readonly lease: SessionBindings.Lease
}

/** A lease whose binding is what was saved last. */
const current = (lease: SessionBindings.Lease): SessionBindings.Lease => {
  let latest = lease.binding
  return {
    get binding() {
      return latest
    },
    save: (binding) =>
      Effect.tap(lease.save(binding), () =>
        Effect.sync(() => {
          latest = Option.some(binding)
        }))
  }
}

/** Why what is remembered of a session does not let this run go on with it. */
const unfit = (
  known: SessionBindings.Binding,
  harness: Harness.Harness,
  cwd: string
): RunRefused | undefined => {
  const { session_id } = known
  if (known.harness !== harness.name) {
    return refuse(
      Failure.make("SESSION_MISMATCH", `session ${session_id} belongs to ${known.harness}, not to ${harness.name}`, {
        data: { field: "harness", known: known.harness }
      })
    )
  }
  return known.harness_session_id === undefined || known.cwd === cwd ? undefined : refuse(
    Failure.make("SESSION_MISMATCH", `session ${session_id} belongs to the directory ${known.cwd}, not to ${cwd}`, {
      data: { field: "workspace.cwd", known: known.cwd }
    })
  )
}

/**
 * Checks that a run can start: its specification, its session, its harness.
 * Holds the session from here on. Fails before anything was started.
 */
export const prepare = (
  options: PrepareOptions
): Effect.Effect<Prepared, RunRefused, SessionBindings.SessionBindings | Scope.Scope> =>
  Effect.gen(function*() {
    const { harness, spec } = options
    const refusal = fault(spec, harness)
    if (refusal !== undefined) return yield* refusal
    const sessionId = spec.session?.id ?? options.newSessionId
    const policy = spec.session?.resume
    const bindings = yield* SessionBindings.SessionBindings
    const lease = yield* Effect.mapError(bindings.acquire(sessionId), (error) => refuse(error.failure))
    const known = Option.getOrUndefined(lease.binding)
    if (known === undefined && policy !== undefined) {
      return yield* refuse(
        Failure.make("SESSION_UNKNOWN", `there is no session ${sessionId} to continue`, { data: { session_id: sessionId } })
      )
    }
    const mismatch = known === undefined ? undefined : unfit(known, harness, options.session.cwd)
    if (mismatch !== undefined) return yield* mismatch
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
    return { spec, harness, options: sessionOptions, lease: current(lease) }
  }).pipe(
    Effect.catchDefect((defect) => {
      const message = options.session.redact(`a bug kept the run from starting: ${Cause.pretty(Cause.die(defect))}`)
      return Effect.fail(refuse(Failure.make("INTERNAL", Redaction.head(message, 8192))))
    }),
    Effect.withSpan("RunPreparation.prepare")
  )
