/**
 * Where the executable of this package lies: in the sources, in the build, and
 * for a bundle that has taken this code in, beside the installed package.
 */
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"

const packageFile = createRequire(import.meta.url).resolve("@turnpike/harness-scripted/package.json")
const root = path.dirname(packageFile)

interface Manifest {
  readonly bin: { readonly "turnpike-scripted-agent": string }
}

/** The directory of the built-in scenarios. */
export const scenarios = path.join(root, "scenarios")

/** The file of the agent's command. */
export const agent = path.join(root, (JSON.parse(fs.readFileSync(packageFile, "utf8")) as Manifest).bin["turnpike-scripted-agent"])

/** The program and arguments that run the agent on the runtime that runs this. */
export const command: readonly [program: string, ...args: ReadonlyArray<string>] = process.versions["deno"] === undefined
  ? [process.execPath, agent]
  : [process.execPath, "run", "-A", "--quiet", agent]
