/**
 * Why a command could not do what was asked of it: a failure of the contract
 * that ends the program.
 */
import { Failure } from "@turnpike/contract"
import * as Schema from "effect/Schema"

export class Refusal extends Schema.TaggedError<Refusal>()("Refusal", { failure: Failure.Failure }) {
  override get message() {
    return this.failure.message
  }
}

export const refuse = (
  code: Failure.FailureCode,
  message: string,
  facts: Partial<Omit<Failure.Failure, "code" | "message">> = {}
): Refusal => new Refusal({ failure: Failure.make(code, message, facts) })

export const fromFailure = (failure: Failure.Failure): Refusal => new Refusal({ failure })

/** The exit code of a command that could not start. */
export const exitCode = (failure: Failure.Failure): 1 | 2 => Failure.exitCodeBeforeStart(failure.code)
