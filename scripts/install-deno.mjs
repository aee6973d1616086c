/**
 * Installs Deno for the Deno suite into `test/deno/runtime/node_modules`, from the npm registry, locked.
 *
 * The package carries its program, so its install script, which would only copy it, isn't run.
 * Prints the path of the launcher on stdout.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { BootstrapError, main } from "./bootstrap.mjs"
import { machineEnvironment, root } from "./steps.mjs"

const project = path.join(root, "test/deno/runtime")
const launcher = path.join(project, "node_modules/.bin/deno")
const wanted = JSON.parse(fs.readFileSync(path.join(project, "package.json"), "utf8")).dependencies.deno

const versionOf = (file) => {
  const result = spawnSync(file, ["--version"], { encoding: "utf8" })
  return result.status === 0 ? /^deno (\S+)/.exec(result.stdout)?.[1] : undefined
}

await main(async () => {
  if (versionOf(launcher) !== wanted) {
    process.stderr.write(`installing Deno ${wanted} (about 100 MB)\n`)
    const installed = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: project, env: machineEnvironment, stdio: ["ignore", 2, 2] })
    if (installed.status !== 0) {
      throw new BootstrapError(`\`npm ci\` in ${project} ended with ${installed.signal ?? installed.error?.message ?? `exit ${installed.status}`}; its output is above.`)
    }
    const found = versionOf(launcher)
    if (found !== wanted) throw new BootstrapError(`Deno ${wanted} was installed, but ${launcher} answers ${found ?? "nothing"}.`)
  }
  process.stdout.write(`${launcher}\n`)
})
