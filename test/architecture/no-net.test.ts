import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { importClosure } from "./support/ImportClosure.ts"
import { importsOf, importsOfFile, parse, root, shown, typescriptFiles, walk } from "./support/Workspace.ts"

const sources = (folder: string) => typescriptFiles(path.join(root, "packages", folder, "src"))

/** The modules of effect that open sockets, speak HTTP or start programs; `effect/net` has addresses, which are values. */
const networkOfEffect = /\/effect\/dist\/(socket|rpc|cluster|workers|process|sql)\/|\/effect\/dist\/http\/(\w*Client|\w*Server|HttpRouter)\b/

/** What a runtime offers without an import. */
const globalsOfRuntime = ["fetch", "WebSocket", "EventSource", "XMLHttpRequest", "process", "Buffer", "require", "Deno", "Bun"]

const globalUses = (text: string): ReadonlyArray<string> => {
  const used: Array<string> = []
  walk(parse(text), (node, parents) => {
    const name = node["name"]
    if (node.type !== "Identifier" || typeof name !== "string") return
    const parent = parents.at(-1)
    const isName = (parent?.type === "MemberExpression" && parent["property"] === node && parent["computed"] === false)
      || (parent?.["key"] === node && parent["computed"] !== true)
    if (!isName && globalsOfRuntime.includes(name)) used.push(name)
  })
  return used
}

describe.each(["contract", "kernel"])("the sources of %s", (folder) => {
  const entries = sources(folder)
  const closure = importClosure(entries)

  it("were all walked, through effect", () => {
    assert.deepStrictEqual(entries.filter((file) => !closure.files.includes(file)), [])
    assert.isAtLeast(closure.files.filter((file) => file.includes("/effect/dist/")).length, 50)
  })

  it("load no module of the runtime, directly or through effect", () => {
    assert.deepStrictEqual(closure.builtins, [])
  })

  it("load nothing but the workspace and effect", () => {
    assert.deepStrictEqual(closure.foreign, [])
  })

  it("load no socket, no HTTP client or server and no process of effect", () => {
    assert.deepStrictEqual(closure.files.filter((file) => networkOfEffect.test(file)), [])
  })

  it("use nothing that the runtime offers without an import", () => {
    const uses = entries.flatMap((file) => globalUses(fs.readFileSync(file, "utf8")).map((name) => `${shown(file)}: ${name}`))
    assert.deepStrictEqual(uses, [])
  })

  it("import only modules of effect that are marked stable", () => {
    const effectTypes = path.join(root, "node_modules/effect/dist")
    const modules = [...new Set(entries.flatMap((file) => importsOfFile(file).map(({ specifier }) => specifier)))]
      .filter((specifier) => specifier.startsWith("effect/"))
      .sort()
    const marks = modules.map((specifier) => {
      const text = fs.readFileSync(path.join(effectTypes, `${specifier.slice("effect/".length)}.d.ts`), "utf8")
      const header = /\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? ""
      return `${specifier} ${/@stability (\w+)/.exec(header)?.[1] ?? "unmarked"}`
    })
    assert.isAtLeast(marks.length, 1)
    assert.deepStrictEqual(marks.filter((mark) => !mark.endsWith(" stable")), [])
  })
})

describe("the walk over imports", () => {
  it("finds every way to name a module", () => {
    assert.deepStrictEqual(
      importsOf(`
        import { a } from "a"
        import type { b } from "b"
        export * as c from "c"
        export type { d } from "d"
        import "e"
        const f = () => import("f")
        type G = import("g").G
        const computed = (name: string) => import(name)
      `),
      [
        { specifier: "a", isTypeOnly: false },
        { specifier: "b", isTypeOnly: true },
        { specifier: "c", isTypeOnly: false },
        { specifier: "d", isTypeOnly: true },
        { specifier: "e", isTypeOnly: false },
        { specifier: "f", isTypeOnly: false },
        { specifier: "g", isTypeOnly: true },
        { specifier: "(computed)", isTypeOnly: false }
      ]
    )
  })

  it("reaches a socket behind a second file, and a client of effect", () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-closure-"))
    try {
      const first = path.join(directory, "First.ts")
      const second = path.join(directory, "Second.ts")
      fs.writeFileSync(first, `export * as Second from "./Second.ts"\nimport type { Server } from "node:http"\n`)
      fs.writeFileSync(second, `import { connect } from "node:net"\nimport "ws"\nimport * as F from "effect/http/FetchHttpClient"\n`)
      const closure = importClosure([first])
      assert.deepStrictEqual(closure.builtins, [{ specifier: "node:net", importer: second }])
      assert.deepStrictEqual(closure.foreign, [{ specifier: "ws", importer: second }])
      assert.isNotEmpty(closure.files.filter((file) => networkOfEffect.test(file)))
    } finally {
      fs.rmSync(directory, { recursive: true })
    }
  })

  it("tells a global of the runtime from a field of that name", () => {
    assert.deepStrictEqual(globalUses(`const x = { process: 1, fetch() {} }; x.process; fetch("/"); const y = { process }`), ["fetch", "process"])
  })
})
