/**
 * What the benchmarks and the soak need before they begin: the command bundled as it ships, the real
 * CLIs, and what is run beside them; and how their programs are started.
 */
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { BootstrapError, nodeForWorkspace } from "./bootstrap.mjs"
import { environment, machineEnvironment, root } from "./steps.mjs"

const say = (text) => process.stderr.write(`bench: ${text}\n`)

/** Bundles the command from the sources into a folder of this process's own; answers the folder. */
export const bundle = () => {
  // Two folders below the package, as the shipped bundle, which looks for its manifest from there; in a folder that is never packed.
  const folder = path.join(root, "packages/cli/node_modules", `.turnpike-bench-${process.pid}`)
  // By the workspace's Node: the one that runs this script may be too old for it.
  const { status } = spawnSync(nodeForWorkspace(), [fileURLToPath(new URL("bench-bundle.mjs", import.meta.url)), folder], { cwd: root, env: environment, stdio: ["ignore", 2, 2] })
  if (status !== 0) throw new BootstrapError("the command could not be bundled; what went wrong is above")
  return folder
}

/** Installs the real CLIs for test/real, once. */
export const installReal = () => {
  const { status } = spawnSync(process.execPath, [fileURLToPath(new URL("install-real.mjs", import.meta.url))], { cwd: root, env: environment, stdio: ["ignore", 2, 2] })
  if (status !== 0) throw new BootstrapError("the real CLIs could not be installed; what went wrong is above")
}

/** Installs, at exact versions, what is run beside them into test/bench, once. Their own copies of the CLIs are left out: they get the ones of test/real. */
export const installPeers = () => {
  const project = path.join(root, "test/bench")
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(project, "package.json"), "utf8"))
  const versionOf = (name) => {
    try {
      return JSON.parse(fs.readFileSync(path.join(project, "node_modules", name, "package.json"), "utf8")).version
    } catch (error) {
      if (error.code === "ENOENT") return undefined
      throw error
    }
  }
  if (Object.entries(dependencies).every(([name, version]) => versionOf(name) === version)) return
  say("installing what is run beside turnpike into test/bench (about 110 MB) …")
  const { error, signal, status } = spawnSync("npm", ["ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"], {
    cwd: project,
    env: machineEnvironment,
    stdio: ["ignore", 2, 2]
  })
  if (status !== 0) {
    throw new BootstrapError(
      `\`npm ci\` in ${project} ended with ${error?.message ?? signal ?? `exit ${status}`}; its output is above. `
        + "It needs the npm registry (`npm config get registry`)."
    )
  }
}

/** Runs a program of test/bench on the workspace's Node, from the sources; resolves with its exit code. The folder is removed afterwards. */
export const run = (program, args, folder) =>
  new Promise((resolve, reject) => {
    const remove = () => {
      if (folder !== undefined) fs.rmSync(folder, { recursive: true, force: true })
    }
    const child = spawn(nodeForWorkspace(), ["--conditions=turnpike-source", path.join(root, "test/bench", program), ...args], {
      cwd: process.cwd(),
      env: { ...environment, ...(folder === undefined ? {} : { BENCH_BUNDLE: folder }) },
      stdio: "inherit"
    })
    // A terminal tells the program, too; it ends what it began, and then this process ends.
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal))
    child.on("error", (error) => {
      remove()
      reject(error)
    })
    child.on("close", (code, signal) => {
      remove()
      resolve(code ?? (signal === "SIGINT" ? 130 : 143))
    })
  })
