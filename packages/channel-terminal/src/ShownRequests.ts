/**
 * Which permission requests have been shown, so that a question comes after
 * what led to it.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

export interface ShownRequests {
  /** Completes when the request has been shown. */
  readonly shown: (requestId: string) => Effect.Effect<void>
  readonly add: (requestId: string) => Effect.Effect<void>
}

export const make = (): ShownRequests => {
  const requests = new Map<string, Deferred.Deferred<void>>()
  const of = (requestId: string): Deferred.Deferred<void> => {
    const known = requests.get(requestId) ?? Deferred.makeUnsafe<void>()
    requests.set(requestId, known)
    return known
  }
  return {
    shown: (requestId) => Effect.suspend(() => Deferred.await(of(requestId))),
    add: (requestId) => Effect.suspend(() => Effect.asVoid(Deferred.succeed(of(requestId), undefined)))
  }
}
