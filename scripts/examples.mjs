/**
 * `npm run examples`: runs every program of `examples/` and shows what it prints.
 *
 * `test/docs/examples.test.ts` compares the same output with the `.out` file beside each.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { CheckFailed, root, runSteps, tool } from "./steps.mjs"

const directory = path.join(root, "examples")
const programs = fs.readdirSync(directory).filter((file) => file.endsWith(".ts")).sort()
if (programs.length === 0) throw new CheckFailed(`${directory} has no example`)

await runSteps(programs.map((file) => [file, () => {
  process.stdout.write(tool("node", ["--conditions=turnpike-source", file], { cwd: directory }).stdout)
}]))
