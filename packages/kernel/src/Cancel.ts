/**
 * Asking a run to end, and remembering who asked first.
 *
 * Levels only rise: none, graceful, hard. A graceful request asks the harness
 * to end its own turn; a hard one cuts the turn off.
 */
import { Verdict } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

export interface Request {
  readonly cause: Verdict.AbortCause
  readonly mode: Verdict.CancelMode
}

export interface CancelToken {
  /** Asks for an end. A request never lowers the level; the first request of each cause and level counts. */
  readonly request: (request: Request) => Effect.Effect<void>
  /** What was asked so far, in order. */
  readonly requests: Effect.Effect<ReadonlyArray<Request>>
  /** Completes with the first request of any level. */
  readonly graceful: Effect.Effect<Request>
  /** Completes with the first hard request. */
  readonly hard: Effect.Effect<Request>
}

export const make: Effect.Effect<CancelToken> = Effect.sync(() => makeUnsafe())

/** As {@link make}, at once. */
export const makeUnsafe = (): CancelToken => {
  const requests: Array<Request> = []
  const graceful = Deferred.makeUnsafe<Request>()
  const hard = Deferred.makeUnsafe<Request>()
  return {
    request: (request) =>
      Effect.suspend(() => {
        if (!requests.some((seen) => seen.cause === request.cause && seen.mode === request.mode)) {
          requests.push(request)
        }
        return Deferred.succeed(graceful, request).pipe(
          Effect.andThen(request.mode === "hard" ? Deferred.succeed(hard, request) : Effect.void),
          Effect.asVoid
        )
      }),
    requests: Effect.sync(() => [...requests]),
    graceful: Deferred.await(graceful),
    hard: Deferred.await(hard)
  }
}

/** What a person or a parent process does to stop a run. */
export type Signal = "interrupt" | "terminate"

/**
 * Turns signals into requests: the first interrupt is graceful, each further
 * one hard; a termination is hard at once.
 */
export const escalator = (token: Pick<CancelToken, "request">): (signal: Signal) => Effect.Effect<Request> => {
  let interrupts = 0
  return (signal) =>
    Effect.suspend(() => {
      const request: Request = signal === "terminate"
        ? { cause: "parent", mode: "hard" }
        : { cause: "user", mode: interrupts++ === 0 ? "graceful" : "hard" }
      return Effect.as(token.request(request), request)
    })
}

const rank = (request: Request): number =>
  Verdict.reasonsByRank.indexOf(Verdict.consequences({ type: "aborted", ...request }).reason)

/** The request that decides a verdict: the one of the highest rank, the first among equals. */
export const strongest = (requests: ReadonlyArray<Request>): Request | undefined =>
  requests.reduce<Request | undefined>(
    (best, request) => best === undefined || rank(request) < rank(best) ? request : best,
    undefined
  )
