/**
 * What has to hold before a run may start.
 *
 * Everything here happens before the run's first event: a refusal leaves
 * nothing started and nothing behind but its sentence.
 */
import { type AgentRunSpec, Contracts, Failure, type Scalars, SessionHeader } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Harness from "./Harness.ts"
import * as Redaction from "./Redaction.ts"
import * as SessionLog from "./SessionLog.ts"
import * as SessionStore from "./SessionStore.ts"
import type * as Surface from "./Surface.ts"
import * as Transcript from "./Transcript.ts"
import * as TurnRecord from "./TurnRecord.ts"

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
  /** Who holds the session meanwhile, for those who are refused; see `SessionStore.Holder`. */
  readonly holder: string
  /** What a session is opened with, apart from what the specification and the session's log say. */
  readonly session: Omit<Harness.SessionOptions, "sessionId" | "resume">
}

/**
 * A run that may start. Its session is held until the scope that prepared it
 * closes. With a session that is kept open it may be executed again and again,
 * one turn after the other.
 */
export interface Prepared {
  readonly spec: AgentRunSpec.AgentRunSpec
  readonly harness: Harness.Harness
  readonly options: Harness.SessionOptions
  readonly store: SessionStore.Service
  readonly log: SessionLog.SessionLog
  readonly record: TurnRecord.TurnRecord
  /** How many turns the session had when it was taken. */
  readonly earlierTurns: number
}

/** Why what is known of a session does not let this run go on with it. */
const unfit = (
  { cwd, harness, id }: SessionHeader.SessionHeader,
  options: PrepareOptions,
  isBound: boolean
): RunRefused | undefined => {
  if (harness !== options.harness.name) {
    return refuse(
      Failure.make("SESSION_MISMATCH", `session ${id} belongs to ${harness}, not to ${options.harness.name}`, {
        data: { field: "harness", known: harness }
      })
    )
  }
  return !isBound || cwd === options.session.cwd ? undefined : refuse(
    Failure.make("SESSION_MISMATCH", `session ${id} belongs to the directory ${cwd}, not to ${options.session.cwd}`, {
      data: { field: "workspace.cwd", known: cwd }
    })
  )
}

const refused = Effect.mapError((error: { readonly failure: Failure.Failure }) => refuse(error.failure))

const isUnknown = ({ failure }: SessionStore.SessionStoreError): boolean => failure.code === "SESSION_UNKNOWN"

/** The messages of the turns before the one that is open, as text. */
const historyOf = (log: SessionLog.SessionLog): Effect.Effect<Effect.Effect<string | undefined>, never, Scope.Scope> => {
  let begun = Number.POSITIVE_INFINITY
  return Effect.as(
    log.observe((event) =>
      Effect.sync(() => {
        if (event.type === "turn/start") begun = event.seq
      })
    ),
    Effect.sync(() => Transcript.of(log.messages().filter(({ seq }) => seq < begun)))
  )
}

/** What its reader knows, and an agent without this history would not. */
const isAnswer = (message: Surface.Message): boolean =>
  message.role === "tool" || (message.role === "assistant" && !message.isPartial)

/** How a session that has a past goes on. */
const resumption = (
  options: PrepareOptions,
  log: SessionLog.SessionLog
): Effect.Effect<Harness.Resume | undefined, RunRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const { harness, spec } = options
    const policy = spec.session?.resume
    const binding = log.binding()
    const messages = log.messages()
    if (binding === undefined && messages.length === 0) return undefined
    const { id, parent } = log.writer.header
    // What the harness never wrote down, and nobody was answered, cannot be lost.
    const isKept = binding?.isPersisted === true || parent !== undefined || messages.some(isAnswer)
    const onLost = policy === "replay" || policy === "fresh" ? policy : isKept ? "fail" : "fresh"
    if (binding === undefined) {
      if (onLost === "fail") {
        return yield* refuse(
          Failure.make(
            "SESSION_LOST",
            parent === undefined
              ? `${harness.name} has no session of its own for what session ${id} holds`
              : `session ${id} was forked from ${parent.id}, and ${harness.name} has no session of its own that ends there`,
            { data: { session_id: id } }
          )
        )
      }
      // There is nothing to resume: no more than nobody asked for.
      if (policy === undefined && harness.capabilities.resume === "unsupported") return undefined
    }
    return {
      harnessSessionId: binding?.harnessSessionId,
      onLost,
      ...(onLost === "replay" ? { history: yield* historyOf(log) } : {})
    }
  })

/**
 * Checks that a run can start: its specification, its session, its harness.
 * Holds the session from here on. Fails before anything was started; a session
 * that was made for it and in which nothing happened is gone with the scope.
 */
export const prepare = (
  options: PrepareOptions
): Effect.Effect<Prepared, RunRefused, SessionStore.SessionStore | Scope.Scope> =>
  Effect.gen(function*() {
    const { harness, spec } = options
    const refusal = fault(spec, harness)
    if (refusal !== undefined) return yield* refusal
    const sessionId = spec.session?.id ?? options.newSessionId
    const store = yield* SessionStore.SessionStore

    const check = (resume: Harness.Resume | undefined) =>
      Effect.suspend(() => {
        const sessionOptions: Harness.SessionOptions = { ...options.session, sessionId, resume }
        return Effect.as(refused(harness.check(sessionOptions)), sessionOptions)
      })

    /** Goes on with a session that there is. */
    const goOn = Effect.gen(function*() {
      const log = yield* SessionLog.open(store, sessionId, options.holder)
      const mismatch = unfit(log.writer.header, options, log.binding() !== undefined)
      if (mismatch !== undefined) return yield* mismatch
      const resume = yield* resumption(options, log)
      return { log, options: yield* check(resume) }
    })

    /** Begins a session; one that stays empty goes again. */
    const begin = Effect.gen(function*() {
      const checked = yield* check(undefined)
      yield* store.create({
        type: "session",
        format: SessionHeader.format,
        id: sessionId,
        created: Math.max(0, Math.round(yield* Clock.currentTimeMillis)),
        harness: harness.name,
        cwd: options.session.cwd
      })
      let isEmpty: Effect.Effect<boolean> = Effect.succeed(true)
      yield* Effect.addFinalizer(() => Effect.flatMap(isEmpty, (empty) =>
        empty
          ? Effect.catchCause(store.delete(sessionId), (cause) => Effect.logDebug(`session ${sessionId}, in which nothing happened, is left`, cause))
          : Effect.void))
      const log = yield* SessionLog.open(store, sessionId, options.holder)
      isEmpty = Effect.match(store.pending(sessionId), {
        onFailure: () => false,
        onSuccess: ({ nextStep, nextTurn }) => log.lastTurn() === 0 && nextStep.length + nextTurn.length === 0
      })
      return { log, options: checked }
    })

    const isKnown = yield* Effect.matchEffect(store.header(sessionId), {
      onFailure: (error) => isUnknown(error) ? Effect.succeed(false) : Effect.fail(error),
      onSuccess: () => Effect.succeed(true)
    })
    if (!isKnown && spec.session?.resume !== undefined) {
      return yield* refuse(
        Failure.make("SESSION_UNKNOWN", `there is no session ${sessionId} to continue`, { data: { session_id: sessionId } })
      )
    }
    // Somebody else may have begun it meanwhile: then it is theirs, or there to go on with.
    const taken = yield* isKnown ? goOn : Effect.catchIf(
      begin,
      (error) => error._tag === "SessionStoreError" && error.failure.code === "SESSION_EXISTS",
      () => goOn
    )
    return {
      spec,
      harness,
      options: taken.options,
      store,
      log: taken.log,
      record: yield* TurnRecord.make(taken.log),
      earlierTurns: taken.log.lastTurn()
    }
  }).pipe(
    Effect.mapError((error) => error._tag === "RunRefused" ? error : refuse(error.failure)),
    Effect.catchDefect((defect) => {
      const message = options.session.redact(`a bug kept the run from starting: ${Cause.pretty(Cause.die(defect))}`)
      return Effect.fail(refuse(Failure.make("INTERNAL", Redaction.head(message, 8192))))
    }),
    Effect.withSpan("RunPreparation.prepare")
  )
