import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { inject } from "vitest"
import type {} from "../../packages/cli/test/support/bundle.ts"
import { type Manifest, readJson, root } from "../architecture/support/Workspace.ts"
import { environment, hasCommand, run } from "../packaging/support/Tarballs.ts"
import { type CodeBlock, codeBlocks, excerptOf, excerptProblem, fenceProblem, relativeLinks } from "./support/Markdown.ts"

const documents = spawnSync("git", ["-c", `safe.directory=${root}`, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: root,
  encoding: "utf8"
}).stdout.split("\0")
  // Release notes tell of the past, and what was recorded is as it was.
  .filter((file) => file !== "" && fs.existsSync(path.join(root, file)) && !/(^|\/)CHANGELOG\.md$|^\.changeset\/|\/recordings\//.test(file))
  .sort()

const read = (document: string) => fs.readFileSync(path.join(root, document), "utf8")
const blocks = documents.flatMap((document) => codeBlocks(document, read(document)))
const named = (each: CodeBlock) => [`${each.document}:${each.line}`, each] as const

// Inside the tests' package, so that a block imports by name what a program of the workspace could.
const work = path.join(root, "test/docs/.work")
const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-docs-"))
afterAll(() => {
  fs.rmSync(work, { recursive: true, force: true })
  fs.rmSync(temporary, { recursive: true, force: true })
})

describe("documents", () => {
  it("were found", () => {
    assert.includeMembers(documents, ["README.md", "CONTRIBUTING.md", "AGENTS.md"])
    assert.isAtLeast(blocks.length, 1)
  })

  it("say of every block of code how it is tried", () => {
    assert.deepStrictEqual(blocks.map(fenceProblem).filter((problem) => problem !== undefined), [])
  })

  it("link to files that exist", () => {
    const broken = documents.flatMap((document) =>
      relativeLinks(read(document))
        .filter((target) => !fs.existsSync(path.resolve(root, path.dirname(document), decodeURIComponent(target))))
        .map((target) => `${document} links to ${target}`)
    )
    assert.deepStrictEqual(broken, [])
  })

  it("name only scripts of npm that exist", () => {
    const scripts = readJson<Manifest>("package.json").scripts ?? {}
    const unknown = documents.flatMap((document) =>
      [...read(document).matchAll(/\bnpm (?:run ([\w:]+)|(start|test)\b)/g)]
        .map((match) => match[1] ?? match[2] ?? "")
        .filter((script) => scripts[script] === undefined)
        .map((script) => `${document}: ${script}`)
    )
    assert.deepStrictEqual(unknown, [])
  })
})

describe("excerpts in documents", () => {
  it("are lines of the files that they name", () => {
    const problems = blocks.flatMap((block) => {
      const file = excerptOf(block)
      if (file === undefined) return []
      const named = path.join(root, file)
      return [excerptProblem(block, fs.existsSync(named) ? fs.readFileSync(named, "utf8") : undefined)]
    })
    assert.isAtLeast(problems.length, 1)
    assert.deepStrictEqual(problems.filter((problem) => problem !== undefined), [])
  })

  // `npm run check` sees to it that nothing of these folders is left out.
  it("of TypeScript come from files whose types are checked", () => {
    const files = blocks.filter(({ language }) => language === "ts").map(excerptOf).filter((file) => file !== undefined)
    assert.deepStrictEqual(files.filter((file) => !/^(packages\/[^/]+\/(src|test)|test|examples)\/.+\.ts$/.test(file)), [])
  })
})

describe("TypeScript in documents", () => {
  const programs = blocks.filter((block) => block.language === "ts" && excerptOf(block) === undefined)
  const fileOf = (block: CodeBlock) => `${block.document.replace(/[^\w]+/g, "-")}-${block.line}.ts`
  const write = () => {
    fs.mkdirSync(work, { recursive: true })
    for (const block of programs) fs.writeFileSync(path.join(work, fileOf(block)), `${block.code}\nexport {}\n`)
    fs.writeFileSync(
      path.join(work, "tsconfig.json"),
      JSON.stringify({
        extends: "../../../tsconfig.test.json",
        compilerOptions: { rootDir: "../../..", noUnusedLocals: false },
        files: programs.map(fileOf),
        include: [],
        exclude: []
      })
    )
  }

  it.runIf(programs.length > 0)("has no type errors", () => {
    write()
    const { status, stdout } = run("tsc", ["-p", work], root)
    assert.deepStrictEqual({ status, stdout }, { status: 0, stdout: "" })
  }, 60_000)

  it.each(programs.filter(({ marks }) => marks.includes("run")).map(named))("%s runs", (_, block) => {
    write()
    const { status, stderr } = run("node", ["--conditions=turnpike-source", path.join(work, fileOf(block))], temporary)
    assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
  }, 60_000)
})

describe.runIf(hasCommand())("commands in documents", () => {
  const commands = blocks.filter(({ language, marks }) => language === "sh" && !marks.includes("install") && !marks.includes("real"))
  const home = path.join(temporary, "home")
  const bin = path.join(temporary, "bin")
  fs.mkdirSync(home)
  fs.mkdirSync(bin)
  // A reader types these in the clone; here they run elsewhere, so `npx` has to find the clone's command, bundled as it ships.
  fs.writeFileSync(path.join(bin, "turnpike"), `#!/bin/sh\nexec node '${inject("turnpikeBundle")}/bin.js' "$@"\n`, { mode: 0o755 })
  fs.writeFileSync(
    path.join(bin, "npx"),
    `#!/bin/sh\nif [ "$1" = turnpike ]; then shift; exec turnpike "$@"; fi\necho "npx $1 is not a command of this repository" >&2\nexit 127\n`,
    { mode: 0o755 }
  )

  // Blocks of one document follow each other in one directory: one may use the file that another wrote.
  it("are tried in a home of their own", () => {
    assert.deepStrictEqual(fs.readdirSync(home), [])
  })

  it.each(commands.map(named))("%s ends as it says", (_, block) => {
    const cwd = path.join(temporary, block.document.replace(/[^\w]+/g, "-"))
    fs.mkdirSync(cwd, { recursive: true })
    const expected = Number(block.marks.find((mark) => mark.startsWith("exit="))?.slice("exit=".length) ?? 0)
    const env = environment({ HOME: home, XDG_STATE_HOME: path.join(home, "state"), NO_COLOR: "1" })
    const ran = run("sh", ["-euc", block.code], cwd, { ...env, PATH: `${bin}${path.delimiter}${env["PATH"]}`, TURNPIKE_HOME: undefined })
    assert.strictEqual(ran.status, expected, `${block.code}\n${ran.stdout}${ran.stderr}`)
  }, 60_000)
})

describe("data in documents", () => {
  const data = blocks.filter(({ language }) => language === "json" || language === "jsonl")

  it("is written in a form that can be parsed", () => {
    assert.deepStrictEqual(blocks.filter(({ language }) => /^(json5|jsonc|yaml)$/.test(language)).map(named), [])
  })

  it.each(data.map(named))("%s parses", (_, block) => {
    const texts = block.language === "json" ? [block.code] : block.code.split("\n").filter((line) => line !== "")
    for (const text of texts) JSON.parse(text)
    assert.isAtLeast(texts.length, 1)
  })
})

describe("the reading of documents", () => {
  it("finds blocks with their marks, and what is wrong with a fence", () => {
    const text = ["# A", "```sh exit=2", "turnpike rum", "```", "  ~~~ts run", "  const a = `x`", "  ~~~", "````text", "```sh", "````", "```python", "1", "```", "```sh later", "```"].join("\n")
    const found = codeBlocks("A.md", text)
    assert.deepStrictEqual(found.map(({ code, language, line, marks }) => ({ code, language, line, marks })), [
      { line: 2, language: "sh", marks: ["exit=2"], code: "turnpike rum\n" },
      { line: 5, language: "ts", marks: ["run"], code: "const a = `x`\n" },
      { line: 8, language: "text", marks: [], code: "```sh\n" },
      { line: 11, language: "python", marks: [], code: "1\n" },
      { line: 14, language: "sh", marks: ["later"], code: "\n" }
    ])
    assert.deepStrictEqual(found.map(fenceProblem).filter((problem) => problem !== undefined), [
      `A.md:11: nothing tries a block of "python"; use ts, sh, json, jsonl or text`,
      `A.md:14: sh knows no mark "later"`
    ])
    assert.throws(() => codeBlocks("B.md", "```ts\nconst a = 1"), "B.md:1 opens a code block that never closes")
  })

  it("sees an excerpt that is not in its file", () => {
    const excerpt = (code: string) => codeBlocks("A.md", ["```ts of=a.ts", code, "```"].join("\n"))[0] ?? assert.fail("no block")
    const text = "const a = 1\n  const b = 2\nconst c = 3\n"
    assert.deepStrictEqual(["const a = 1\n  const b = 2", "const c = 3", "const b = 2", "const a", "const a = 1\nconst c = 3"].map((code) => excerptProblem(excerpt(code), text)), [
      undefined,
      undefined,
      ...Array.from({ length: 3 }, () => "A.md:1: these lines are not in a.ts as they stand here")
    ])
    assert.strictEqual(excerptProblem(excerpt("a"), undefined), "A.md:1: there is no file a.ts")
  })

  it("finds relative links outside code", () => {
    assert.deepStrictEqual(relativeLinks("[a](b.md#c) [d](https://e) `[f](g.md)` [h](#i)\n```text\n[j](k.md)\n```\n[l](../m.md \"n\")"), ["b.md", "../m.md"])
  })
})
