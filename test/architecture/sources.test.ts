import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { importsOfFile, packages, root, shown, typescriptFiles } from "./support/Workspace.ts"

const all = packages()
const sources = all.flatMap(({ directory }) => typescriptFiles(path.join(directory, "src")))
const text = (file: string) => fs.readFileSync(file, "utf8")

/** Programs that people build agents on, and who makes them: words of the adapters, not of the core. */
const harnessName = /claude|anthropic|codex|openai|copilot|gemini|opencode/i

/** The two fields of the run contract that are named after harnesses, as its first version already was. */
const credentialField = { file: "packages/contract/src/AgentRunSpec.ts", line: /^\s*(claude|codex): Schema\.optionalKey\(/ }

const namesIn = (file: string, content: string): ReadonlyArray<string> =>
  content.split("\n").flatMap((line, index) =>
    harnessName.test(line) && !(file === credentialField.file && credentialField.line.test(line)) ? [`${file}:${index + 1}: ${line.trim()}`] : []
  )

/** Longer than a file should be without a reason, and the reason. */
const longFiles: Readonly<Record<string, string>> = {}
const maxLines = 600

describe("sources", () => {
  it("were found in every package", () => {
    assert.deepStrictEqual(all.filter(({ directory }) => !sources.some((file) => file.startsWith(`${directory}/src/`))).map(({ folder }) => folder), [])
  })

  it("import modules, never the barrels that load everything", () => {
    const barrels = ["effect", "@effect/platform-node", "@effect/platform-node-shared"]
    const uses = sources.flatMap((file) =>
      importsOfFile(file).filter(({ specifier }) => barrels.includes(specifier)).map(({ specifier }) => `${shown(file)} imports ${specifier}`)
    )
    assert.deepStrictEqual(uses, [])
  })

  it("name their relative imports with the extension, so that no build is needed to run them", () => {
    const bare = sources.flatMap((file) =>
      importsOfFile(file).filter(({ specifier }) => specifier.startsWith(".") && !specifier.endsWith(".ts")).map(({ specifier }) => `${shown(file)} imports ${specifier}`)
    )
    assert.deepStrictEqual(bare, [])
  })

  it("have one index for each package, which only says what the package exports", () => {
    const indexes = sources.filter((file) => path.basename(file) === "index.ts")
    assert.deepStrictEqual(indexes.filter((file) => path.basename(path.dirname(file)) !== "src").map(shown), [])
    const strangeLines = indexes.flatMap((file) =>
      text(file).split("\n")
        .filter((line) => line !== "" && !/^export (type )?\* as [A-Z]\w* from "\.\/\w+\.ts"$/.test(line))
        // A command is run, not imported.
        .filter((line) => !(line === "export {}" && shown(file) === "packages/cli/src/index.ts"))
        .map((line) => `${shown(file)}: ${line}`)
    )
    assert.deepStrictEqual(strangeLines, [])
  })

  it("are nouns of a length that one can read", () => {
    const lengths = sources.map((file) => ({ file: shown(file), lines: text(file).split("\n").length }))
    assert.deepStrictEqual(lengths.filter(({ file, lines }) => lines > maxLines && longFiles[file] === undefined), [])
    assert.deepStrictEqual(Object.keys(longFiles).filter((file) => !lengths.some((each) => each.file === file && each.lines > maxLines)), [])
  })

  it("ship no doubles for tests, other than those that are a package's subject", () => {
    const doubles = sources.filter((file) => !/packages\/(testkit|harness-scripted)\//.test(file))
      .filter((file) => /(Fake|Mock|Stub|Dummy)/.test(path.basename(file)) || /export (const|class|function|interface|type) \w*(Fake|Mock|Stub|Dummy)/i.test(text(file)))
    assert.deepStrictEqual(doubles.map(shown), [])
  })

  it("have no folder for things without a noun", () => {
    const nameless = sources.filter((file) => /(^|\/)(utils?|helpers?|common|types|constants|misc)(\/|\.ts$)/i.test(path.relative(root, file)))
    assert.deepStrictEqual(nameless.map(shown), [])
  })
})

describe("the core", () => {
  it("contains no harness's name", () => {
    const found = ["contract", "kernel"].flatMap((folder) =>
      typescriptFiles(path.join(root, "packages", folder, "src")).flatMap((file) => namesIn(shown(file), text(file)))
    )
    assert.deepStrictEqual(found, [])
  })

  it("is scanned by a rule that sees a name wherever it stands", () => {
    assert.deepStrictEqual(namesIn("packages/kernel/src/Run.ts", `if (name === "claude") {}\n// as CodexWire does\nconst a = 1`), [
      `packages/kernel/src/Run.ts:1: if (name === "claude") {}`,
      "packages/kernel/src/Run.ts:2: // as CodexWire does"
    ])
    assert.deepStrictEqual(namesIn("packages/contract/src/AgentRunSpec.ts", "  codex: Schema.optionalKey(x)\n  gemini: Schema.optionalKey(x)"), [
      "packages/contract/src/AgentRunSpec.ts:2: gemini: Schema.optionalKey(x)"
    ])
  })
})
