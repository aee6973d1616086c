/**
 * The text that a command sends: its argument, or standard input.
 */
import * as Effect from "effect/Effect"
import * as InputText from "../InputText.ts"
import { refuse, type Refusal } from "../Refusal.ts"

/** Reads it, to the byte. Fails with `EMPTY_TASK` where there is nothing in it. */
export const read = (argument: string): Effect.Effect<string, Refusal> =>
  Effect.flatMap(
    argument === InputText.standardInput ? InputText.read(argument) : Effect.succeed(argument),
    (text) =>
      text.trim() === ""
        ? Effect.fail(refuse("EMPTY_TASK", `the text${argument === InputText.standardInput ? " on standard input" : ""} is empty`, {
          remedy: "Give a text as the argument, or `-` and the text on standard input."
        }))
        : Effect.succeed(text)
  )
