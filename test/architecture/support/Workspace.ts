/**
 * The workspace as its files describe it: manifests, TypeScript projects, sources and what each
 * source imports.
 *
 * Read from disk on every call and never through an installed tool's configuration, so that these
 * nets are independent of the tools that hold the same rules elsewhere.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { parseAst } from "vite"

/** The repository's directory. */
export const root = path.dirname(path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url)))))

export interface Manifest {
  readonly name: string
  readonly version?: string
  readonly private?: boolean
  readonly license?: string
  readonly type?: string
  readonly description?: string
  readonly sideEffects?: boolean
  readonly files?: ReadonlyArray<string>
  readonly bin?: Readonly<Record<string, string>>
  readonly engines?: Readonly<Record<string, string>>
  readonly repository?: { readonly type: string; readonly url: string; readonly directory: string }
  readonly exports?: Readonly<Record<string, string | null | Readonly<Record<string, string>>>>
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly publishConfig?: {
    readonly access?: string
    readonly exports?: Readonly<Record<string, string | null | Readonly<Record<string, string>>>>
  }
}

export interface TsConfig {
  readonly compilerOptions?: { readonly types?: ReadonlyArray<string>; readonly [option: string]: unknown }
  readonly references?: ReadonlyArray<{ readonly path: string }>
}

export interface Package {
  /** The folder's name under `packages/`; the published name is `@turnpike/<folder>`. */
  readonly folder: string
  readonly directory: string
  readonly manifest: Manifest
  readonly tsconfig: TsConfig
}

/** Reads a JSON file of the repository, by its path from the root. */
export const readJson = <A>(file: string): A => JSON.parse(fs.readFileSync(path.join(root, file), "utf8")) as A

/** Every package, in the order of the folders' names. */
export const packages = (): ReadonlyArray<Package> =>
  fs.readdirSync(path.join(root, "packages")).sort().map((folder) => ({
    folder,
    directory: path.join(root, "packages", folder),
    manifest: readJson<Manifest>(`packages/${folder}/package.json`),
    tsconfig: readJson<TsConfig>(`packages/${folder}/tsconfig.json`)
  }))

/** The TypeScript files below a directory, absolute and sorted; none when it does not exist. */
export const typescriptFiles = (directory: string): ReadonlyArray<string> =>
  fs.existsSync(directory)
    ? fs.readdirSync(directory, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.split(path.sep).includes("node_modules"))
      .map((file) => path.join(directory, file))
      .sort()
    : []

export interface Import {
  readonly specifier: string
  /** Erased before it runs. */
  readonly isTypeOnly: boolean
}

/** A node of the syntax tree; only the fields that are asked for. */
interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** Calls `visit` with every node of a syntax tree, parents first. */
export const walk = (node: Node, visit: (node: Node, parents: ReadonlyArray<Node>) => void, parents: ReadonlyArray<Node> = []): void => {
  visit(node, parents)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) walk(child, visit, [...parents, node])
    }
  }
}

/** The syntax tree of a TypeScript or JavaScript text. */
export const parse = (text: string, lang: "ts" | "js" = "ts"): Node => parseAst(text, { lang }) as unknown as Node

const stringValue = (node: unknown): string | undefined =>
  isNode(node) && node.type === "Literal" && typeof node["value"] === "string" ? node["value"] : undefined

/**
 * Every module that a text names: static and dynamic imports, re-exports, `import("…")` types.
 *
 * An import whose specifiers are all `type` still runs under `verbatimModuleSyntax`, so it counts
 * as one that runs.
 */
export const importsOf = (text: string, lang: "ts" | "js" = "ts"): ReadonlyArray<Import> => {
  const found: Array<Import> = []
  walk(parse(text, lang), (node) => {
    const specifier = stringValue(node["source"])
    switch (node.type) {
      case "ImportDeclaration":
        if (specifier !== undefined) found.push({ specifier, isTypeOnly: node["importKind"] === "type" })
        return
      case "ExportNamedDeclaration":
      case "ExportAllDeclaration":
        if (specifier !== undefined) found.push({ specifier, isTypeOnly: node["exportKind"] === "type" })
        return
      case "ImportExpression":
        found.push({ specifier: specifier ?? "(computed)", isTypeOnly: false })
        return
      case "TSImportType":
        if (specifier !== undefined) found.push({ specifier, isTypeOnly: true })
        return
    }
  })
  return found
}

/** The imports of a file on disk. */
export const importsOfFile = (file: string): ReadonlyArray<Import> =>
  importsOf(fs.readFileSync(file, "utf8"), file.endsWith(".ts") ? "ts" : "js")

/** A path as it is shown in a failure: from the root. */
export const shown = (file: string): string => path.relative(root, file)
