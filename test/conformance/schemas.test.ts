import { Contracts, StreamRules, Verdict } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Arbitraries from "../../packages/contract/test/support/Arbitraries.ts"
import { mutations } from "./support/Mutations.ts"
import { ajv, decoder, type Input, parse, python, type Python } from "./support/Validators.ts"
import { allFolders, directory, fileNameOf, root, streams, type VectorFile, vectors } from "./support/Vectors.ts"

const files = vectors(Contracts.names)

/** The input of a vector, with its numbers rounded to doubles as JavaScript reads them. */
const inputOf = ({ vector }: VectorFile): Input =>
  vector.given.text === undefined ? Result.succeed(vector.given.input) : parse(vector.given.text)

const verdict = (result: Result.Result<unknown, string>) => Result.isSuccess(result) ? "valid" : "invalid"

/** What JSON Schema alone says of a vector. */
const bySchema = ({ vector }: VectorFile) => vector.then.json_schema ?? vector.then.verdict

/** Everything that is put to Python, so that one process answers it all. */
const samples = Effect.runSync(Effect.forEach(Contracts.names, (name) =>
  Effect.map(
    Arbitrary.sampleEffect(Arbitraries.of(name), { count: 60, seed: "conformance", maxDiscards: 100_000 }),
    (values) =>
      values.flatMap((value, index) => {
        const text = JSON.stringify(value)
        return [
          { contract: name, text, mutated: false },
          ...mutations(JSON.parse(text), `${name} ${index}`, 4).map((mutant) => ({
            contract: name,
            text: JSON.stringify(mutant),
            mutated: true
          }))
        ]
      })
  ))).flat()

const answers: Python = python([
  ...files.map(({ path }) => ({ file: path })),
  ...samples.map(({ contract, text }) => ({ contract, text }))
])

/** The rows of the table in schemas/README.md, between its two marks. */
const documentedDifferences = (): ReadonlyArray<string> => {
  const text = fs.readFileSync(path.join(root, "schemas/README.md"), "utf8")
  const table = /<!-- differences -->\n([\s\S]*?)<!-- \/differences -->/u.exec(text)?.[1] ?? ""
  return [...table.matchAll(/^\| `([a-z-]+)` \|/gmu)].map((match) => match[1] ?? "")
}

describe("vectors", () => {
  it("are there for every contract, valid and invalid, and in no other folder", () => {
    assert.deepStrictEqual([...allFolders()], [...Contracts.names, "session-log", "stream"].sort())
    for (const name of Contracts.names) {
      for (const kind of ["valid", "invalid"]) {
        assert.isAtLeast(
          files.filter(({ vector }) => vector.given.contract === name && vector.then.verdict === kind).length,
          2,
          `${kind} vectors of ${name}`
        )
      }
    }
    assert.isAtLeast(files.length + streams().length, 60)
  })

  it("have the shape that their own schema says", () => {
    const wrong = files.flatMap(({ name, path }) => {
      const result = ajv("test-vector", parse(fs.readFileSync(path, "utf8")))
      return Result.isFailure(result) ? [`${name}: ${result.failure}`] : []
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("are named after their titles and lie in the folder of their contract", () => {
    assert.deepStrictEqual(
      files.map(({ name }) => name),
      files.map(({ vector }) => `${vector.given.contract}/${fileNameOf(vector.title)}.json`)
    )
    assert.deepStrictEqual(
      streams().map(({ name }) => name),
      streams().map(({ vector }) => `stream/${fileNameOf(vector.title)}.jsonl`)
    )
  })

  it("have no stream without its expectation, and no expectation without its stream", () => {
    const names = fs.readdirSync(path.join(directory, "stream")).sort()
    const stems = [...new Set(names.map((name) => name.replace(/\.(jsonl|expected\.json)$/u, "")))]
    assert.deepStrictEqual(names, stems.flatMap((stem) => [`${stem}.expected.json`, `${stem}.jsonl`]))
  })
})

describe("the decoder", () => {
  it("says of every vector what the vector says", () => {
    const wrong = files.flatMap((file) => {
      const result = decoder(file.vector.given.contract, inputOf(file))
      return verdict(result) === file.vector.then.verdict
        ? []
        : [`${file.name}: ${Result.isFailure(result) ? result.failure : "valid"}`]
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("takes every random value, and gives it back unchanged", () => {
    for (const { contract, mutated, text } of samples) {
      if (mutated) continue
      const result = decoder(contract, parse(text))
      assert.deepStrictEqual(result, Result.succeed(JSON.parse(text)), `${contract}: ${text}`)
    }
  })
})

describe("ajv", () => {
  it("says of every vector what JSON Schema can say", () => {
    const wrong = files.flatMap((file) => {
      const result = ajv(file.vector.given.contract, inputOf(file))
      return verdict(result) === bySchema(file)
        ? []
        : [`${file.name}: ${Result.isFailure(result) ? result.failure : "valid"}`]
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("takes every random value", () => {
    const wrong = samples.filter(({ contract, mutated, text }) => !mutated && verdict(ajv(contract, parse(text))) === "invalid")
    assert.deepStrictEqual(wrong, [])
  })

  it("never refuses a mutated value that the decoder takes, and takes one that the decoder refuses only for a documented reason", () => {
    const mutants = samples.filter(({ mutated }) => mutated)
    const found = mutants.flatMap(({ contract, text }) => {
      const decoded = decoder(contract, parse(text))
      const validated = ajv(contract, parse(text))
      if (verdict(decoded) === verdict(validated)) return []
      return [Result.isFailure(decoded) ? decoded.failure : `${contract} takes ${text}, ajv: ${verdict(validated)}`]
    })
    const documented =
      /at least (cache_read_tokens and cache_write_tokens together|reasoning_tokens)$|a day that the month has$|which follows from the verdict$/u
    assert.deepStrictEqual(found.filter((reason) => !documented.test(reason)), [])
    const refused = mutants.filter(({ contract, text }) => verdict(decoder(contract, parse(text))) === "invalid")
    assert.isAbove(refused.length, mutants.length / 2, "most mutations make a value invalid")
    assert.isBelow(refused.length, mutants.length, "some mutations leave a value valid")
  })
})

describe("python3-jsonschema", () => {
  const required = process.env["TURNPIKE_REQUIRE_PYTHON"] === "1"

  it("says of everything what ajv says", (context) => {
    if ("missing" in answers) {
      if (required) assert.fail(`TURNPIKE_REQUIRE_PYTHON is 1, but python3-jsonschema is missing: ${answers.missing}`)
      process.stderr.write(`skipped: the third validator is missing: ${answers.missing}\n`)
      return context.skip(answers.missing)
    }
    const expected = [
      ...files.map((file) => ({ what: file.name, valid: bySchema(file) === "valid" })),
      ...samples.map(({ contract, text }) => ({
        what: `${contract}: ${text}`,
        valid: verdict(ajv(contract, parse(text))) === "valid"
      }))
    ]
    const wrong = expected.flatMap(({ valid, what }, index) =>
      answers.answers[index]?.valid === valid ? [] : [{ what, answer: answers.answers[index] }]
    )
    assert.deepStrictEqual(wrong, [])
  })
})

describe("schemas/README.md", () => {
  it("lists exactly what JSON Schema is found not to say", () => {
    const found = files.flatMap((file) =>
      verdict(decoder(file.vector.given.contract, inputOf(file))) !== verdict(ajv(file.vector.given.contract, inputOf(file)))
        ? [file.vector.then.difference ?? `undocumented: ${file.name}`]
        : []
    )
    assert.deepStrictEqual([...documentedDifferences()].sort(), [...new Set(found)].sort())
  })

  it("says of every verdict what follows from it", () => {
    const text = fs.readFileSync(path.join(root, "schemas/README.md"), "utf8")
    const codes = (cell: string) => [...cell.matchAll(/`([a-z_-]+)`/gu)].map((match) => match[1] ?? "")
    const documented = [...text.matchAll(/^\| (`[^|]*) \| ([^|]*) \| (true|false) \| ([0-9]+) \|$/gmu)].flatMap(
      ([, verdicts = "", reasons = "", success, exitCode]) => {
        const [first, ...causes] = codes(verdicts)
        const subjects = first === "aborted" ? causes.map((cause) => `aborted by ${cause}`) : codes(verdicts)
        return subjects.map((subject) => [subject, codes(reasons), success === "true", Number(exitCode)] as const)
      }
    )
    const error = { code: "INTERNAL", message: "x", retryable: false, remedy: "x" } as const
    const rowOf = (subject: string, verdicts: ReadonlyArray<Verdict.Verdict>) => {
      const consequences = verdicts.map(Verdict.consequences)
      const reasons = [...new Set(consequences.map(({ reason }) => reason))]
      return [subject, reasons, consequences.every(({ success }) => success), consequences[0]?.exitCode] as const
    }
    const actual = [
      ...(["completed", "max-tokens", "max-turns", "refusal", "interrupted"] as const).map((type) => rowOf(type, [{ type }])),
      rowOf("blocked", [{ type: "blocked", by: "x" }]),
      rowOf("error", [{ type: "error", error }]),
      ...Verdict.AbortCause.literals.map((cause) =>
        rowOf(
          `aborted by ${cause}`,
          (["graceful", "hard"] as const).map((mode) => ({ type: "aborted" as const, cause, mode }))
        )
      )
    ]
    const sorted = (rows: ReadonlyArray<readonly [string, ...ReadonlyArray<unknown>]>) =>
      rows.toSorted(([a], [b]) => (a < b ? -1 : 1))
    assert.deepStrictEqual(sorted(documented), sorted(actual))
  })

  it("lists exactly the rules of a stream", () => {
    const text = fs.readFileSync(path.join(root, "schemas/README.md"), "utf8")
    const table = /<!-- stream-rules -->\n([\s\S]*?)<!-- \/stream-rules -->/u.exec(text)?.[1] ?? ""
    const rows = [...table.matchAll(/^\| `([a-z-]+)` \| (.*) \|$/gmu)].map(([, rule, sentence]) => [rule, sentence])
    assert.deepStrictEqual(rows, Object.entries(StreamRules.rules).map(([rule, sentence]) => [rule, sentence]))
  })
})

describe("streams", () => {
  for (const { name, text, vector } of streams()) {
    it(name, () => {
      const violations = StreamRules.validate(text, vector.given)
      assert.deepStrictEqual(violations.map(({ line, rule }) => ({ line, rule })), vector.then.violations)
    })
  }

  it("violate every rule at least once", () => {
    const violated = new Set(streams().flatMap(({ vector }) => vector.then.violations.map(({ rule }) => rule)))
    assert.deepStrictEqual([...violated].sort(), Object.keys(StreamRules.rules).sort())
  })
})
