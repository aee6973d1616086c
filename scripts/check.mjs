/**
 * `npm run check`: types, lint and the diagnostics of Effect's language service.
 *
 * The last two answer "nothing found" also when they looked at nothing, so each has to show that it
 * looked at every source, and that it would have seen a mistake.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { CheckFailed, expectNone, root, runSteps, tool } from "./steps.mjs"

const filesBelow = (directory, isWanted) =>
  fs.existsSync(path.join(root, directory))
    ? fs.readdirSync(path.join(root, directory), { recursive: true })
      .map((file) => path.posix.join(directory, file.split(path.sep).join("/")))
      .filter((file) => !file.includes("node_modules/") && isWanted(file))
    : []

const packageFolders = fs.readdirSync(path.join(root, "packages"))
const sources = packageFolders.flatMap((folder) => filesBelow(`packages/${folder}/src`, (file) => file.endsWith(".ts")))

await runSteps([
  ["the packages build", () => {
    tool("tsc", ["-b"])
    return `${packageFolders.length} packages`
  }],
  ["tests, scripts and examples have no type errors", () => {
    const listed = tool("tsc", ["-p", "tsconfig.test.json", "--listFilesOnly"]).stdout.split("\n")
    const seen = new Set(listed.map((file) => path.relative(root, file).split(path.sep).join("/")))
    const tests = [...packageFolders.flatMap((folder) => filesBelow(`packages/${folder}/test`, (file) => file.endsWith(".ts"))), ...filesBelow("test", (file) => file.endsWith(".ts"))]
    const examples = filesBelow("examples", (file) => file.endsWith(".ts"))
    expectNone("files that tsconfig.test.json leaves out:", [...sources, ...tests, ...examples].filter((file) => !seen.has(file)))
    tool("tsc", ["-p", "tsconfig.test.json"])
    return `${sources.length} sources, ${tests.length} files of tests, ${examples.length} of examples`
  }],
  ["lint sees what it should see", () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-lint-"))
    try {
      const file = path.join(directory, "packages/kernel/src/Bad.ts")
      fs.mkdirSync(path.dirname(file), { recursive: true })
      fs.copyFileSync(path.join(root, ".oxlintrc.json"), path.join(directory, ".oxlintrc.json"))
      fs.writeFileSync(file, `import * as E from "effect"\nexport const f = (x: any) => { console.log(x, fetch("/"), E) }\n`)
      const { diagnostics } = JSON.parse(tool("oxlint", ["--format", "json"], { cwd: directory, exitCodes: [0, 1] }).stdout)
      const found = new Set(diagnostics.map((diagnostic) => diagnostic.code))
      const expected = ["eslint(no-console)", "eslint(no-restricted-globals)", "eslint(no-restricted-imports)", "typescript(no-explicit-any)"]
      // The one variable under test is the rule set; a code that is missing means a rule that no longer exists.
      expectNone(`rules that saw nothing (seen: ${[...found].join(", ")}):`, expected.filter((code) => !found.has(code)))
      return `${expected.length} rules tried`
    } finally {
      fs.rmSync(directory, { recursive: true })
    }
  }],
  ["lint finds nothing", () => {
    const { diagnostics, number_of_files: count } = JSON.parse(tool("oxlint", ["--format", "json"], { exitCodes: [0, 1] }).stdout)
    if (!(count >= sources.length)) throw new CheckFailed(`oxlint looked at ${count} files; there are ${sources.length} sources alone`)
    expectNone(
      "oxlint:",
      diagnostics.map(({ code, filename, labels, message }) => `${filename}:${labels[0]?.span.line ?? "?"} ${code} ${message}`)
    )
    return `${count} files`
  }],
  ["Effect's diagnostics find nothing", () => {
    const { diagnostics, files } = JSON.parse(
      tool("effect-tsgo", ["diagnostics", "--project", "tsconfig.test.json", "--format", "json", "--list-files", "--strict"], { exitCodes: [0, 1, 2] }).stdout
    )
    const seen = new Set(files.map(({ file }) => path.relative(root, file).split(path.sep).join("/")))
    expectNone("sources that were not looked at:", sources.filter((file) => !seen.has(file)))
    expectNone(
      "diagnostics:",
      diagnostics.filter(({ severity }) => severity !== "message" && severity !== "suggestion")
        .map(({ file, line, message, name }) => `${path.relative(root, file)}:${line} ${name}: ${message}`)
    )
    return `${files.length} files`
  }],
  ["Effect's diagnostics see an effect that nobody runs", () => {
    const directory = fs.mkdtempSync(path.join(root, "test", ".diagnostics-"))
    try {
      fs.writeFileSync(
        path.join(directory, "tsconfig.json"),
        JSON.stringify({ extends: "../../tsconfig.test.json", compilerOptions: { rootDir: "../.." }, include: ["Bad.ts"], exclude: [] })
      )
      fs.writeFileSync(path.join(directory, "Bad.ts"), `import * as Effect from "effect/Effect"\nEffect.log("never runs")\n`)
      const { diagnostics } = JSON.parse(
        tool("effect-tsgo", ["diagnostics", "--project", path.join(directory, "tsconfig.json"), "--format", "json"], { exitCodes: [0, 1, 2] }).stdout
      )
      if (!diagnostics.some(({ name }) => name === "floatingEffect")) throw new CheckFailed(`it saw ${JSON.stringify(diagnostics)}`)
    } finally {
      fs.rmSync(directory, { recursive: true })
    }
  }]
])
