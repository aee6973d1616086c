/**
 * What a person or a parent process does to stop the program, and the last
 * resort when stopping takes too long.
 *
 * Node runs these listeners between other work, never inside a system call, so
 * they may do whatever other code may. Nothing is left running after a forced
 * exit: the watchdog of the process package outlives it by just that.
 */
import type { Cancel } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"

/** Takes a signal. Answers whether it was a hard request: the next one then leaves by force. */
export type Receive = (signal: Cancel.Signal) => Effect.Effect<{ readonly isHard: boolean }>

export interface Signals {
  /** Signals go to this receiver from now on. */
  readonly receiveBy: (receive: Receive) => Effect.Effect<void>
  /** What was cut off is over: the next hard request counts anew. */
  readonly rearm: Effect.Effect<void>
  /** Everything is over but the delivery: the next signal leaves by force. */
  readonly finish: Effect.Effect<void>
}

/** How long after a hard request the program is given to end by itself: 20 s, more than closing a session takes at most. */
export const backstopMillis = 20_000

const exitCodes = { interrupt: 130, terminate: 143 } as const

const watched = [["SIGINT", "interrupt"], ["SIGTERM", "terminate"], ["SIGHUP", "terminate"]] as const

/** Leaves at once. What is written to standard error is written before. */
const leave = (signal: Cancel.Signal, why: string): never => {
  try {
    fs.writeSync(2, `turnpike: ${why}; its result was not delivered\n`)
  } catch {
    // Nobody is there to read it.
  }
  if (process.stdin.isTTY) process.stdin.setRawMode(false)
  return process.exit(exitCodes[signal])
}

/** Listens until the scope closes. */
export const listen = (first: Receive): Effect.Effect<Signals, never, Scope.Scope> =>
  Effect.gen(function*() {
    const run = Effect.runForkWith(yield* Effect.context<never>())
    let receive = first
    let isHard = false
    let isFinished = false
    let backstop: NodeJS.Timeout | undefined

    const on = (signal: Cancel.Signal) => {
      if (isHard || isFinished) return leave(signal, "left by force")
      run(
        Effect.map(receive(signal), (outcome) => {
          if (!outcome.isHard || isHard) return
          isHard = true
          backstop = setTimeout(() => leave(signal, `stopping took longer than ${backstopMillis / 1000} s`), backstopMillis)
          backstop.unref()
        })
      )
    }
    const clear = Effect.sync(() => {
      clearTimeout(backstop)
      isHard = false
    })
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        watched.map(([name, signal]) => {
          const listener = () => on(signal)
          process.on(name, listener)
          return () => process.off(name, listener)
        })
      ),
      (listeners) =>
        Effect.andThen(
          clear,
          Effect.sync(() => {
            for (const off of listeners) off()
          })
        )
    )
    return {
      receiveBy: (next) =>
        Effect.sync(() => {
          receive = next
        }),
      rearm: clear,
      finish: Effect.sync(() => {
        isFinished = true
      })
    }
  })
