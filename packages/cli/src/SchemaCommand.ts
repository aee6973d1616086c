/**
 * `turnpike schema`: prints a contract as JSON Schema.
 */
import { Contracts } from "@turnpike/contract"
import { Outlet } from "@turnpike/channel-terminal"
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

/** Prints a text, or refuses where nobody takes it. */
export const print = (content: string): Effect.Effect<void, Refusal> => {
  const out = Outlet.make(process.stdout, "standard output")
  return Effect.andThen(out.write(content), out.flush).pipe(
    Effect.mapError((error) => refuse("OUTPUT_CLOSED", error.message, { remedy: "Keep standard output open." }))
  )
}

export const main = ([name]: ReadonlyArray<string>): Promise<number> =>
  Program.run(Effect.as(Effect.flatMap(text(name), print), 0))
