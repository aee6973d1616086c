/**
 * Writes `schemas/`: the JSON Schema of every contract, the words of the
 * contract (`meta.json`), and the format of the test vectors.
 *
 *     node --conditions=turnpike-source scripts/schemas.ts [--check]
 *
 * With `--check` nothing is written; files that differ are named and the exit
 * code is 1. Files in `schemas/v1` that nothing generates are removed.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { Contracts } from "../packages/contract/src/index.ts"

const directory = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), "schemas", Contracts.version)

/** The format of the files in `test/vectors/<contract>/`. Their streams have a format of their own. */
const testVector = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $id: `https://turnpike.dev/schemas/${Contracts.version}/test-vector.schema.json`,
  title: "test-vector",
  description: "One case: an input, and what every validator of the contract says of it.",
  type: "object",
  properties: {
    title: { type: "string", minLength: 1, description: "The fact, as a sentence. The file is named after it." },
    given: {
      type: "object",
      properties: {
        contract: { enum: Contracts.names, description: "The contract that the input is checked against." },
        input: { description: "The input as JSON. Read it with a parser that keeps large integers, where there is one." },
        text: { type: "string", description: "The input as text, where it is the text that matters." }
      },
      required: ["contract"],
      oneOf: ["input", "text"].map((field) => ({ properties: { [field]: true }, required: [field] })),
      additionalProperties: false
    },
    then: {
      type: "object",
      properties: {
        verdict: { enum: ["valid", "invalid"], description: "What the contract says." },
        reason: { type: "string", minLength: 1, description: "Why the input is invalid, for people." },
        json_schema: {
          const: "valid",
          description: "Present where JSON Schema alone takes the input for valid although it is not."
        },
        difference: {
          type: "string",
          minLength: 1,
          description: "The name in schemas/README.md of what JSON Schema cannot say."
        }
      },
      required: ["verdict"],
      dependentRequired: { json_schema: ["difference"], difference: ["json_schema"] },
      if: { properties: { verdict: { const: "invalid" } } },
      then: { properties: { reason: true }, required: ["reason"] },
      else: { properties: { reason: false, json_schema: false } },
      additionalProperties: false
    }
  },
  required: ["title", "given", "then"],
  additionalProperties: false
}

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** Returns the content of every file of `schemas/v1`, by file name. */
export const files = (): ReadonlyMap<string, string> =>
  new Map([
    ...Contracts.names.map((name) => [`${name}.schema.json`, pretty(Contracts.jsonSchema(name))] as const),
    ["test-vector.schema.json", pretty(testVector)],
    ["meta.json", pretty(Contracts.meta())]
  ])

/** Returns the content of every file that is there now, by file name. */
export const current = (): ReadonlyMap<string, string> =>
  fs.existsSync(directory)
    ? new Map(
      fs.readdirSync(directory).sort().map((name) => [name, fs.readFileSync(path.join(directory, name), "utf8")] as const)
    )
    : new Map()

const main = (args: ReadonlyArray<string>): number => {
  const unknown = args.filter((arg) => arg !== "--check")
  if (unknown.length > 0) {
    process.stderr.write(`schemas: unknown argument ${unknown.join(" ")}; it takes --check or nothing\n`)
    return 2
  }
  const wanted = files()
  const found = current()
  const changed = [...wanted].filter(([name, text]) => found.get(name) !== text).map(([name]) => name)
  const extra = [...found.keys()].filter((name) => !wanted.has(name))
  if (args.includes("--check")) {
    for (const name of changed) process.stderr.write(`schemas: ${name} is not what the contract says\n`)
    for (const name of extra) process.stderr.write(`schemas: ${name} belongs to no contract\n`)
    if (changed.length + extra.length === 0) return 0
    process.stderr.write("schemas: run `npm run schemas` and commit what changes\n")
    return 1
  }
  fs.mkdirSync(directory, { recursive: true })
  for (const name of changed) fs.writeFileSync(path.join(directory, name), wanted.get(name) ?? "")
  for (const name of extra) fs.rmSync(path.join(directory, name))
  process.stderr.write(`schemas: ${wanted.size} files, ${changed.length} written, ${extra.length} removed\n`)
  return 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2))
