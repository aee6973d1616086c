/**
 * `turnpike schema`: prints a contract as JSON Schema.
 */
import { Contracts } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import { quote } from "./CommandLine.ts"
import * as Program from "./Program.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import { nearest } from "./Suggestion.ts"

const meta = "meta"

const text = (name: string | undefined): Effect.Effect<string, Refusal> => {
  if (name === undefined) return Effect.succeed(`${[...Contracts.names, meta].join("\n")}\n`)
  if (name === meta) return Effect.succeed(`${JSON.stringify(Contracts.meta(), undefined, 2)}\n`)
  if (Contracts.isName(name)) return Effect.succeed(`${JSON.stringify(Contracts.jsonSchema(name), undefined, 2)}\n`)
  return Effect.fail(unknownContract(name, [...Contracts.names, meta]))
}

/** A name that is no contract's. */
export const unknownContract = (name: string, names: ReadonlyArray<string>): Refusal => {
  const meant = nearest(name, names)
  return refuse("USAGE", `there is no contract ${quote(name)}`, {
    remedy: `${meant === undefined ? "" : `Did you mean ${meant}? `}Choose one of ${names.join(", ")}.`
  })
}

/**
 * Prints a text. Answers whether it was taken whole: a reader that stops early,
 * such as `head`, has what it wanted. Refuses where it cannot be written.
 */
export const print = (content: string): Effect.Effect<boolean, Refusal> =>
  Effect.callback((resume) => {
    process.stdout.write(content, (error) => {
      const code = (error as NodeJS.ErrnoException | null | undefined)?.code
      resume(
        error == null
          ? Effect.succeed(true)
          : code === "EPIPE" || code === "ECONNRESET"
          ? Effect.succeed(false)
          : Effect.fail(refuse("OUTPUT_CLOSED", `standard output cannot be written: ${error.message}`, { remedy: "Write to something that takes it." }))
      )
    })
  })

export const main = ([name]: ReadonlyArray<string>): Promise<number> =>
  Program.run(Effect.map(Effect.flatMap(text(name), print), (isTaken) => isTaken ? 0 : 1))
