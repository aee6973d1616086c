/**
 * Installs the real coding-agent CLIs for `test/real` from the npm registry, locked.
 *
 * `test/real` is an npm project of its own, outside the workspace. Nothing happens when what is
 * installed has the versions that its package.json names. Install scripts aren't run: each CLI's
 * native program comes in a package of its own, and the tests start that program.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { BootstrapError, main } from "./bootstrap.mjs"
import { machineEnvironment, root } from "./steps.mjs"

const project = path.join(root, "test/real")
const { dependencies } = JSON.parse(fs.readFileSync(path.join(project, "package.json"), "utf8"))

const installed = (name) => {
  try {
    return JSON.parse(fs.readFileSync(path.join(project, "node_modules", name, "package.json"), "utf8"))
  } catch (error) {
    if (error.code === "ENOENT") return undefined
    throw error
  }
}

/** The package with the native program for this machine, one of the optional dependencies of the CLI's own. */
const nativeOf = (name) => {
  const suffix = `-${process.platform}-${process.arch}`
  return Object.keys(installed(name)?.optionalDependencies ?? {}).find((one) => one.endsWith(suffix))
}

const missing = () =>
  Object.entries(dependencies).filter(([name, version]) => {
    const native = nativeOf(name)
    return installed(name)?.version !== version || native === undefined || installed(native) === undefined
  })

const spell = (entries) => entries.map(([name, version]) => `${name} ${version}`).join(", ")

await main(async () => {
  const wanted = missing()
  if (wanted.length === 0) return process.stderr.write(`install-real: ${spell(Object.entries(dependencies))} already there\n`)
  process.stderr.write(`install-real: installing ${spell(wanted)} into test/real (some hundred MB each) …\n`)
  const started = Date.now()
  const result = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: project,
    env: machineEnvironment,
    stdio: ["ignore", 2, 2]
  })
  if (result.status !== 0) {
    throw new BootstrapError(
      `\`npm ci\` in ${project} ended with ${result.error?.message ?? result.signal ?? `exit ${result.status}`}; its output is above. `
        + "It needs the npm registry (`npm config get registry`) and about 1 GB of disk; when both are there, run `npm run test:real` again. "
        + "The other suites need none of it."
    )
  }
  const absent = missing()
  if (absent.length > 0) {
    throw new BootstrapError(`\`npm ci\` in ${project} succeeded without installing ${spell(absent)} for ${process.platform}-${process.arch}. Either package-lock.json there does not match package.json, or the CLI has no program for this platform.`)
  }
  process.stderr.write(`install-real: done in ${Math.round((Date.now() - started) / 1000)} s\n`)
})
