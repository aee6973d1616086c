/**
 * Where the executable of this package lies: in the sources, in the build, and
 * for a bundle that has taken this code in, beside the installed package.
 *
 * Looked for when it is needed, so that loading this module reads no file.
 */
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"

interface Manifest {
  readonly bin: { readonly "turnpike-scripted-agent": string }
}

const packageFile = (): string => createRequire(import.meta.url).resolve("@turnpike/harness-scripted/package.json")

/** The directory of the built-in scenarios. */
export const scenarios = (): string => path.join(path.dirname(packageFile()), "scenarios")

/** The program and arguments that run the agent on the runtime that runs this. */
export const command = (): readonly [program: string, ...args: ReadonlyArray<string>] => {
  const file = packageFile()
  const manifest = JSON.parse(fs.readFileSync(file, "utf8")) as Manifest
  const agent = path.join(path.dirname(file), manifest.bin["turnpike-scripted-agent"])
  return process.versions["deno"] === undefined ? [process.execPath, agent] : [process.execPath, "run", "-A", "--quiet", agent]
}
