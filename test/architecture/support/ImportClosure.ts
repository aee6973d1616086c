/**
 * Everything that runs when some files are loaded: their imports, and the imports of those, through
 * workspace packages (to their sources) and through `effect` (to its built modules).
 *
 * Imports that are erased are not followed. A module that cannot be resolved is a failure of the
 * walk, never a module left out.
 */
import * as fs from "node:fs"
import { builtinModules } from "node:module"
import * as path from "node:path"
import { importsOfFile, type Manifest, readJson, root } from "./Workspace.ts"

export interface ImportClosure {
  /** Absolute paths, sorted, the entries included. */
  readonly files: ReadonlyArray<string>
  /** Modules of the runtime itself, with the file that imports each. */
  readonly builtins: ReadonlyArray<{ readonly specifier: string; readonly importer: string }>
  /** Packages that are neither of the workspace nor effect, with the file that imports each. */
  readonly foreign: ReadonlyArray<{ readonly specifier: string; readonly importer: string }>
}

const effectDirectory = fs.realpathSync(path.join(root, "node_modules/effect"))

const isBuiltin = (specifier: string): boolean =>
  specifier.startsWith("node:") || builtinModules.includes(specifier) || builtinModules.includes(specifier.split("/")[0] ?? "")

const existing = (file: string, specifier: string, importer: string): string => {
  if (!fs.existsSync(file)) throw new Error(`${importer} imports ${specifier}, and there is no ${file}`)
  return file
}

const resolve = (specifier: string, importer: string): string | undefined => {
  if (specifier.startsWith(".")) return existing(path.resolve(path.dirname(importer), specifier), specifier, importer)
  if (specifier === "effect") return existing(path.join(effectDirectory, "dist/index.js"), specifier, importer)
  if (specifier.startsWith("effect/")) {
    const subpath = specifier.slice("effect/".length)
    const direct = path.join(effectDirectory, "dist", `${subpath}.js`)
    return fs.existsSync(direct) ? direct : existing(path.join(effectDirectory, "dist", subpath, "index.js"), specifier, importer)
  }
  if (specifier.startsWith("@turnpike/")) {
    const [, folder = "", ...rest] = specifier.split("/")
    const subpath = rest.length === 0 ? "." : `./${rest.join("/")}`
    const target = readJson<Manifest>(`packages/${folder}/package.json`).exports?.[subpath]
    const source = typeof target === "object" && target !== null ? target["turnpike-source"] : undefined
    if (source === undefined) throw new Error(`${importer} imports ${specifier}, which ${folder} does not export`)
    return existing(path.join(root, "packages", folder, source), specifier, importer)
  }
  return undefined
}

/** Follows every import that runs, from some files, to the end. */
export const importClosure = (entries: ReadonlyArray<string>): ImportClosure => {
  const seen = new Set<string>()
  const builtins: Array<{ specifier: string; importer: string }> = []
  const foreign: Array<{ specifier: string; importer: string }> = []
  const pending = [...entries]
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    for (const { isTypeOnly, specifier } of importsOfFile(file)) {
      if (isTypeOnly) continue
      if (isBuiltin(specifier)) {
        builtins.push({ specifier, importer: file })
        continue
      }
      const target = resolve(specifier, file)
      if (target === undefined) foreign.push({ specifier, importer: file })
      else pending.push(target)
    }
  }
  return { files: [...seen].sort(), builtins, foreign }
}
