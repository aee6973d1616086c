/**
 * Three independent readers of the contract: the decoder of `@turnpike/contract`,
 * ajv on `schemas/`, and Debian's python3-jsonschema on `schemas/`.
 */
import { Contracts } from "@turnpike/contract"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Result from "effect/Result"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "./Vectors.ts"

/** The name of a contract, or of the format of the vectors. */
export type SchemaName = Contracts.Name | "test-vector"

export type Question =
  | { readonly file: string }
  | { readonly contract: Contracts.Name; readonly text: string }

const schemas = path.join(root, "schemas", Contracts.version)

/** What a text is before anyone checks it: a value, or no JSON. */
export type Input = Result.Result<unknown, string>

export const parse = (text: string): Input =>
  Result.try({ try: () => JSON.parse(text) as unknown, catch: String })

/** The decoder's answer; on refusal with the reason. */
export const decoder = (() => {
  const decoders = new Map(Contracts.names.map((name) => [name, Contracts.decode(name)]))
  return (name: Contracts.Name, input: Input): Result.Result<unknown, string> =>
    Result.flatMap(input, (input) => decoders.get(name)?.(input) ?? Result.fail(`no contract ${name}`))
})()

/** Ajv's answer on the committed schemas, compiled in its strict mode. */
export const ajv = (() => {
  const instance = new Ajv2020({ strict: true, allErrors: false })
  const compiled = new Map([...Contracts.names, "test-vector" as const].map((name) =>
    [name, instance.compile(JSON.parse(fs.readFileSync(path.join(schemas, `${name}.schema.json`), "utf8")))] as const
  ))
  return (name: SchemaName, input: Input): Result.Result<unknown, string> =>
    Result.flatMap(input, (input) => {
      const validate = compiled.get(name)
      if (validate === undefined) return Result.fail(`no schema ${name}`)
      return validate(input) ? Result.succeed(input) : Result.fail(instance.errorsText(validate.errors))
    })
})()

const pythons = ["/usr/bin/python3", "python3"]

interface Answer {
  readonly valid: boolean
  readonly why?: string
}

export type Python =
  | { readonly answers: ReadonlyArray<Answer> }
  | { readonly missing: string }

/**
 * Asks Python about everything at once. Answers `missing` where there is no
 * Python or no python3-jsonschema, and throws where it is there and fails.
 */
export const python = (questions: ReadonlyArray<Question>): Python => {
  const program = path.join(root, "test/conformance/validate.py")
  const tried: Array<string> = []
  for (const command of pythons) {
    const run = spawnSync(command, [program, schemas], {
      input: questions.map((question) => `${JSON.stringify(question)}\n`).join(""),
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", PYTHONIOENCODING: "utf-8" },
      maxBuffer: 1 << 28,
      timeout: 120_000
    })
    if (run.error !== undefined && "code" in run.error && run.error.code === "ENOENT") {
      tried.push(`${command}: not found`)
      continue
    }
    if (run.status === 3) {
      tried.push(`${command}: ${run.stderr.trim()}`)
      continue
    }
    if (run.status !== 0) throw new Error(`${command} failed (${run.status ?? run.error?.message}): ${run.stderr}`)
    const answers = run.stdout.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Answer)
    if (answers.length !== questions.length) {
      throw new Error(`${command} answered ${answers.length} of ${questions.length} questions`)
    }
    return { answers }
  }
  return { missing: `${tried.join("; ")}. Install it with: apt-get install python3-jsonschema` }
}
