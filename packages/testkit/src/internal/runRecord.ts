/**
 * What one run has asked so far, and the gate that its `wait` scenarios stand at.
 *
 * Plain mutable state, changed only between two turns of the event loop and
 * owned by the server that made it.
 */
import * as Effect from "effect/Effect"
import type * as ModelRequest from "../ModelRequest.ts"

type Request = ModelRequest.ModelRequest

export interface RunRecord {
  /** A copy of the requests recorded so far, in the order of `seq`. */
  readonly requests: () => ReadonlyArray<Request>
  readonly record: (request: Omit<Request, "seq">) => Request
  /** Changes what is known about a request's answer. */
  readonly amend: (seq: number, change: Partial<Pick<Request, "status" | "usage" | "ending">>) => void
  /** Counts a request for an answer, from 1. */
  readonly countAnswer: () => number
  /** Completes with the first request, recorded already or to come, that satisfies the predicate; dies of what the predicate throws. */
  readonly waitFor: (predicate: (request: Request) => boolean) => Effect.Effect<Request>
  /** Lets the request that has waited longest pass, or the next one that comes. */
  readonly release: () => void
  readonly passGate: Effect.Effect<void>
}

export const make = (): RunRecord => {
  const requests: Array<Request> = []
  const watchers = new Set<() => void>()
  const waiting: Array<() => void> = []
  let answers = 0
  let permits = 0
  const tell = () => {
    for (const watcher of watchers) watcher()
  }
  return {
    requests: () => [...requests],
    record: (request) => {
      const recorded = { ...request, seq: requests.length }
      requests.push(recorded)
      tell()
      return recorded
    },
    amend: (seq, change) => {
      const request = requests[seq]
      if (request === undefined) return
      requests[seq] = { ...request, ...change }
      tell()
    },
    countAnswer: () => ++answers,
    waitFor: (predicate) =>
      Effect.callback((resume) => {
        const look = () => {
          try {
            const found = requests.find(predicate)
            if (found === undefined) return
            resume(Effect.succeed(found))
          } catch (thrown) {
            // The watcher's own mistake: nothing to do with the request that is being recorded.
            resume(Effect.die(thrown))
          }
          watchers.delete(look)
        }
        watchers.add(look)
        look()
        return Effect.sync(() => {
          watchers.delete(look)
        })
      }),
    release: () => {
      const next = waiting.shift()
      if (next === undefined) permits++
      else next()
    },
    passGate: Effect.callback((resume) => {
      if (permits > 0) {
        permits--
        return resume(Effect.void)
      }
      const pass = () => resume(Effect.void)
      waiting.push(pass)
      return Effect.sync(() => {
        const at = waiting.indexOf(pass)
        if (at >= 0) waiting.splice(at, 1)
      })
    })
  }
}
