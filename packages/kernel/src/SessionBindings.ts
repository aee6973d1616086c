/**
 * What Turnpike remembers of a session between runs, and who may use it now.
 *
 * One holder at a time: a second one is refused with the holder's name. What is
 * saved is saved whole or not at all.
 */
import { Failure, Scalars } from "@turnpike/contract"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

export const Binding = Schema.Struct({
  session_id: Scalars.SessionId,
  harness: Scalars.NonEmptyString,
  harness_session_id: Schema.optionalKey(Scalars.NonEmptyString),
  /** Whether the harness is known to have written the session: a turn of it has said something. */
  persisted: Schema.Boolean,
  cwd: Scalars.NonEmptyString,
  /** The number of turns begun. */
  turns: Scalars.Count,
  created_at: Scalars.EpochMillis,
  updated_at: Scalars.EpochMillis
}).annotate({ identifier: "SessionBinding" })
export type Binding = typeof Binding.Type

/** The bindings could not be read, written or locked. */
export class SessionBindingsError extends Schema.TaggedError<SessionBindingsError>()("SessionBindingsError", {
  failure: Failure.Failure
}) {
  override get message() {
    return this.failure.message
  }
}

export const busy = (sessionId: string, holder: string): SessionBindingsError =>
  new SessionBindingsError({
    failure: Failure.make("SESSION_BUSY", `session ${sessionId} is used by ${holder}`)
  })

/** Nothing is saved: the session may be somebody else's by now. */
export const over = (sessionId: string): SessionBindingsError =>
  new SessionBindingsError({
    failure: Failure.make("SESSION_BUSY", `session ${sessionId} is no longer held by this run`)
  })

/** The right to use a session, held until its scope closes. Nothing can be saved after that. */
export interface Lease {
  /** What was remembered when the lease was taken. */
  readonly binding: Option.Option<Binding>
  /** Replaces what is remembered, whole or not at all. */
  readonly save: (binding: Binding) => Effect.Effect<void, SessionBindingsError>
}

export class SessionBindings extends Context.Service<SessionBindings, {
  /** Takes the session for the caller, or refuses with `SESSION_BUSY` naming the holder. */
  readonly acquire: (sessionId: Scalars.SessionId) => Effect.Effect<Lease, SessionBindingsError, Scope.Scope>
}>()("@turnpike/kernel/SessionBindings") {
  /** Remembers as long as the process lives. */
  static readonly layerMemory = Layer.sync(SessionBindings, () => {
    const bindings = new Map<string, Binding>()
    const held = new Map<string, object>()
    return SessionBindings.of({
      acquire: (sessionId) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            if (held.has(sessionId)) return Effect.fail(busy(sessionId, "another run of this process"))
            const holder = {}
            held.set(sessionId, holder)
            return Effect.succeed(holder)
          }),
          () =>
            Effect.sync(() => {
              held.delete(sessionId)
            })
        ).pipe(
          Effect.map((holder) => ({
            binding: Option.fromUndefinedOr(bindings.get(sessionId)),
            save: (binding: Binding) =>
              Effect.suspend(() => {
                if (held.get(sessionId) !== holder) return Effect.fail(over(sessionId))
                bindings.set(sessionId, binding)
                return Effect.void
              })
          }))
        )
    })
  })
}
