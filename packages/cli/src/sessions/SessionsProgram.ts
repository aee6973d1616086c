/**
 * The frame around a command on sessions: what it prints, how it is stopped, and
 * what becomes of its failures.
 */
import type { SessionStore } from "@turnpike/kernel"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Program from "../Program.ts"
import { fromFailure, type Refusal } from "../Refusal.ts"
import { print } from "../SchemaCommand.ts"
import * as Signals from "../Signals.ts"

/** Whoever reads standard output has gone: the command is over, and has not failed. */
export class ReaderGone extends Data.TaggedError("ReaderGone") {}

/** Why a command ends before its end. */
export type Problem = Refusal | SessionStore.SessionStoreError | ReaderGone

/** Prints a text and waits until it is taken. */
export const write = (text: string): Effect.Effect<void, Refusal | ReaderGone> =>
  text === "" ? Effect.void : Effect.flatMap(print(text), (isTaken) => isTaken ? Effect.void : Effect.fail(new ReaderGone()))

/** Prints a value as one line of JSON. */
export const writeJson = (value: unknown): Effect.Effect<void, Refusal | ReaderGone> => write(`${JSON.stringify(value)}\n`)

/** Why what is told of a work cannot be printed, for whoever would do the work again. `done` is a sentence without its full stop. */
export const doneAllTheSame = ({ failure }: Refusal, done: string): Refusal => fromFailure({ ...failure, message: `${done}, but ${failure.message}` })

/** Prints what is told of a work that is done. Where it cannot be printed, the failure says that it was done all the same. */
export const afterwards = (printing: Effect.Effect<void, Refusal | ReaderGone>, done: string): Effect.Effect<void, Refusal | ReaderGone> =>
  Effect.mapError(printing, (problem) => problem._tag === "Refusal" ? doneAllTheSame(problem, done) : problem)

/**
 * Runs a command to its end and returns the exit code. A signal interrupts it, so
 * that it lets go of what it holds and removes what it had begun to write; a second
 * one leaves at once. A reader that has gone is no failure: it has what it wanted.
 */
export const run = (command: Effect.Effect<number, Problem, Scope.Scope>): Promise<number> =>
  Program.run(Effect.gen(function*() {
    const left = yield* Deferred.make<130 | 143>()
    yield* Signals.listen((signal) => Effect.as(Deferred.succeed(left, signal === "interrupt" ? 130 : 143), { isHard: true }))
    return yield* Effect.raceFirst(Effect.scoped(command), Deferred.await(left)).pipe(
      Effect.catchTags({
        ReaderGone: () => Effect.succeed(0),
        SessionStoreError: ({ failure }) => Effect.fail(fromFailure(failure))
      })
    )
  }))
