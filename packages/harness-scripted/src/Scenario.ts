/**
 * What a scripted agent is to do: the scenario language as a schema, and the
 * scenarios that come with the package.
 */
import { Failure } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Program from "./internal/program.ts"
import * as Language from "./ScenarioLanguage.ts"

export type Scenario = Language.Scenario
export type Action = Language.Action

const Count = Schema.Natural
const NonNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const fieldSchema = (field: Language.Field): Schema.Codec<unknown, unknown> => {
  switch (field.kind) {
    case "string":
      return Schema.String
    case "count":
      return Count
    case "number":
      return NonNegative
    case "boolean":
      return Schema.Boolean
    case "json":
      return Schema.Json
    case "strings":
      return Schema.Array(Schema.String)
    case "literals":
      return Schema.Literals(field.values)
    case "list":
      return Schema.Array(struct(field.of))
    case "struct":
      return struct(field.of)
    case "actions":
      return Schema.Array(Schema.suspend((): Schema.Codec<unknown, unknown> => actionUnion))
  }
}

const fieldsOf = (fields: Language.Fields): Record<string, Schema.Codec<unknown, unknown>> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const described = fieldSchema(field).annotate({ description: field.description })
      return [name, field.optional === true ? Schema.optionalKey(described) : described]
    })
  )

const struct = (fields: Language.Fields): Schema.Codec<unknown, unknown> => Schema.Struct(fieldsOf(fields))

const actionUnion: Schema.Codec<unknown, unknown> = Schema.Union(
  Object.entries(Language.actionTable).map(([type, { does, takes }]) =>
    Schema.Struct({ type: Schema.Literal(type), ...fieldsOf(takes) }).annotate({ description: does })
  )
).annotate({ identifier: "ScenarioAction", description: "One thing that the scripted agent does." })

/**
 * A scenario, made from the table of the language. Decode it strictly
 * (`onExcessProperty: "error"`): unknown fields are mistakes. What no schema of
 * one field says, such as that `write` needs exactly one of `text` and
 * `base64`, is added by a check.
 */
export const Scenario: Schema.Codec<Scenario, unknown> = Schema.Struct(fieldsOf(Language.scenarioFields)).check(
  Schema.makeFilter((value: unknown) => {
    const [problem] = Language.problemsOf(value)
    return problem === undefined ? undefined : { path: [problem.path], issue: problem.message }
  })
  // The table's types and the schema's come from the same table, by different ways: TypeScript cannot see that they agree; a test does.
).annotate({ identifier: "Scenario", description: "What a scripted agent is to do." }) as unknown as Schema.Codec<Scenario, unknown>

/** The names of the scenarios that come with the package, in order. */
export const builtIn = (): ReadonlyArray<string> =>
  fs.readdirSync(Program.scenarios()).filter((file) => file.endsWith(".json")).map((file) => file.slice(0, -".json".length)).sort()

const isFile = (name: string): boolean => name.includes("/") || name.includes(path.sep) || name.endsWith(".json")

/** The file of a scenario: a built-in one by its name, any other by its path. */
export const file = (name: string, cwd: string): Effect.Effect<string, Failure.Failure> =>
  Effect.suspend(() => {
    if (isFile(name)) return Effect.succeed(path.resolve(cwd, name))
    if (builtIn().includes(name)) return Effect.succeed(path.join(Program.scenarios(), `${name}.json`))
    return Effect.fail(Failure.make("INVALID_SPEC", `there is no scenario ${name}; there are ${builtIn().join(", ")}, and a file's name has a / or ends in .json`, {
      remedy: "Set TURNPIKE_SCENARIO to one of these names or to the path of a scenario file."
    }))
  })

const unreadable = (path: string, cause: unknown): Failure.Failure =>
  Failure.make("FILE_UNREADABLE", `the scenario ${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)

/** Reads and checks a scenario. Fails with FILE_UNREADABLE or with INVALID_SPEC, which names every place that is wrong. */
export const read = (path: string): Effect.Effect<Scenario, Failure.Failure> =>
  Effect.gen(function*() {
    const value = yield* Effect.try({
      try: (): unknown => JSON.parse(fs.readFileSync(path, "utf8")),
      catch: (cause) => unreadable(path, cause)
    })
    const problems = Language.problemsOf(value)
    if (problems.length > 0) {
      return yield* Effect.fail(Failure.make("INVALID_SPEC", `${path} is not a scenario: ${Language.describeProblems(problems).replaceAll("\n", "; ")}`, {
        remedy: "Correct the named places; `turnpike-scripted-agent --describe` describes the language."
      }))
    }
    return value as Scenario
  })
