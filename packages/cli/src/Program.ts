/**
 * The frame around a command: one Effect, one exit code, and an answer to what
 * nobody expected.
 */
import { Failure } from "@turnpike/contract"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Composition from "./Composition.ts"
import { exitCode, fromFailure, refuse, type Refusal } from "./Refusal.ts"

const bug = (cause: string): Refusal => fromFailure(Failure.make("INTERNAL", `a bug ended the program: ${cause.slice(0, 8192)}`))

/**
 * Runs a command to its end and returns the exit code. A refusal is told and
 * decides the code; a bug is told as such and is 1, also one that is thrown
 * outside the command: the command is then interrupted, so that it closes what
 * it opened.
 */
export const run = async (command: Effect.Effect<number, Refusal, Scope.Scope>): Promise<number> => {
  try {
    process.cwd()
  } catch {
    const refusal = refuse("FILE_UNREADABLE", "the current directory does not exist any more", { remedy: "Change to a directory that exists." })
    Composition.tell(refusal)
    return exitCode(refusal.failure)
  }
  const abort = new AbortController()
  let broken = false
  const onThrown = (thrown: unknown) => {
    broken = true
    Composition.tell(bug(thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown)))
    abort.abort()
  }
  process.on("uncaughtException", onThrown)
  process.on("unhandledRejection", onThrown)
  const exit = await Effect.runPromiseExit(Effect.scoped(command), { signal: abort.signal })
  process.off("uncaughtException", onThrown)
  process.off("unhandledRejection", onThrown)
  if (broken) return 1
  if (Exit.isSuccess(exit)) return exit.value
  const refusal = Cause.findErrorOption(exit.cause)
  if (Option.isSome(refusal)) {
    Composition.tell(refusal.value)
    return exitCode(refusal.value.failure)
  }
  Composition.tell(bug(Cause.pretty(exit.cause)))
  return 1
}
