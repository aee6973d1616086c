/**
 * Installs what this clone needs, on a machine that has only Node 20 (or newer) and npm.
 *
 * Depends on nothing and runs before anything is installed. It does its work once per content of
 * the lockfile and the manifests (the stamp in `node_modules`), says what it does on stderr, and
 * leaves no stamp behind when it fails, so that the next call starts again. The Node that runs
 * everything afterwards (24) is a locked npm package on Linux; elsewhere the machine's own Node has
 * to be new enough.
 */
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const stampFile = path.join(root, "node_modules", ".turnpike-installed")
const lockFile = path.join(root, ".turnpike-installing")
const installedNode = path.join(root, "node_modules", ".bin", "node")

/** The Node that may start this script, and the one that runs the workspace. */
const minimumToStart = [20, 0]
const minimumToRun = [22, 19]

/** Ends the bootstrap: the message names what is wrong and what to do about it. */
export class BootstrapError extends Error {}

const say = (text) => process.stderr.write(`bootstrap: ${text}\n`)

const isAtLeast = (version, minimum) => {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number)
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1])
}

const readManifest = (directory) => JSON.parse(fs.readFileSync(path.join(root, directory, "package.json"), "utf8"))

/** The files whose content decides what an installation contains. */
const inputs = () => {
  const packages = fs.readdirSync(path.join(root, "packages")).sort()
    .map((name) => path.join("packages", name, "package.json"))
  return ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json", "examples/package.json", "test/package.json", ...packages]
    .filter((file) => fs.existsSync(path.join(root, file)))
}

const expectedStamp = () => {
  const hash = createHash("sha256")
  for (const file of inputs()) {
    hash.update(file).update("\0").update(fs.readFileSync(path.join(root, file))).update("\0")
  }
  return `${hash.digest("hex")} ${process.platform}-${process.arch}\n`
}

const isInstalled = () => {
  try {
    return fs.readFileSync(stampFile, "utf8") === expectedStamp()
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return false
    throw error
  }
}

/** Answers the version of a Node that works, or what it said when it did not. */
const probe = (file) => {
  const result = spawnSync(file, ["--version"], { encoding: "utf8" })
  const version = (result.stdout ?? "").trim()
  return result.status === 0 && /^v\d/.test(version)
    ? { version }
    : { problem: (result.error?.message ?? (result.stderr.trim() || `exit ${result.status ?? result.signal}`)) }
}

/**
 * Answers the Node that runs the workspace: the installed one, else the one that runs this script.
 *
 * Fails with a `BootstrapError` when neither is new enough.
 */
export const nodeForWorkspace = () => {
  if (fs.existsSync(installedNode)) {
    const installed = probe(installedNode)
    if (installed.version !== undefined && isAtLeast(installed.version, minimumToRun)) return installedNode
    throw new BootstrapError(
      `the Node that was installed at ${installedNode} does not run here (${installed.problem ?? installed.version}). `
        + `Put a Node >= ${minimumToRun.join(".")} of your own on the PATH, delete node_modules, and install with `
        + "`npx -y pnpm@12.4.2 install --frozen-lockfile --no-optional`."
    )
  }
  if (isAtLeast(process.versions.node, minimumToRun)) return process.execPath
  throw new BootstrapError(
    `Node ${process.versions.node} (${process.execPath}) is too old to run Turnpike: need >= ${minimumToRun.join(".")}. `
      + `On Linux (x64, arm64) the installation brings one; for ${process.platform}-${process.arch} there is none, `
      + "so install a newer Node and try again."
  )
}

/** What the output of a failed installation means, in the order of how sure the sign is. */
const explanations = [
  [/ENOSPC|no space left on device|os error 28/i, "the disk is full. The installation needs about 1 GB in this directory and in the home directory; free some and try again."],
  [/EACCES|EPERM|permission denied|EROFS|read-only file system/i, "a directory cannot be written. Check who owns this directory and the home directory, and try again."],
  [
    /ERR_PNPM_OUTDATED_LOCKFILE|ERR_PNPM_LOCKFILE_MISSING|ERR_PNPM_NO_LOCKFILE|frozen-lockfile/i,
    "pnpm-lock.yaml does not match the manifests. If you changed a package.json, run `pnpm install --no-frozen-lockfile` and commit the lockfile."
  ],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_PNPM_META_FETCH_FAIL|ERR_SOCKET|error sending request|dns error|network/i,
    "the npm registry cannot be reached. Check the network, the proxy settings and `npm config get registry`, and try again."
  ],
  [
    /UNABLE_TO_GET_ISSUER|SELF_SIGNED_CERT|CERT_|certificate/i,
    "the certificate of the npm registry is not trusted here. Point `npm config set cafile` and NODE_EXTRA_CA_CERTS at your authority, and try again."
  ],
  [/E404|ERR_PNPM_FETCH_404|ERR_PNPM_NO_MATCHING_VERSION|ETARGET/i, "the npm registry does not have a package of the lockfile. Check `npm config get registry`; a mirror may be incomplete."]
]

const explain = (output) =>
  explanations.find(([sign]) => sign.test(output))?.[1] ?? "its output is above. Nothing else was done."

/** Runs a program with its output shown on stderr; resolves with how it ended and the last of what it said. */
const run = (file, args) =>
  new Promise((resolve) => {
    // With NODE_ENV=production the package manager would leave out the tools, and say that all is well.
    const { NODE_ENV: _, ...env } = process.env
    // Without a network npm would otherwise say nothing for more than a minute.
    const patience = { npm_config_fetch_retry_mintimeout: "2000", npm_config_fetch_retry_maxtimeout: "8000" }
    const child = spawn(file, args, { cwd: root, env: { ...patience, ...env }, stdio: ["ignore", "pipe", "pipe"] })
    let tail = ""
    const show = (chunk) => {
      process.stderr.write(chunk)
      tail = (tail + chunk).slice(-20_000)
    }
    child.stdout.setEncoding("utf8").on("data", show)
    child.stderr.setEncoding("utf8").on("data", show)
    child.on("error", (error) => resolve({ code: null, output: `${tail}\n${error.message}`, problem: error }))
    child.on("close", (code, signal) => resolve({ code, signal, output: tail }))
  })

/** The package manager in the version that the root manifest names: the installed one, else through npx. */
const pnpmCommand = () => {
  const wanted = readManifest(".").packageManager
  const version = wanted.slice("pnpm@".length)
  const local = path.join(root, "node_modules", ".bin", "pnpm")
  if (fs.existsSync(local)) {
    const found = spawnSync(local, ["--version"], { encoding: "utf8", cwd: root })
    if (found.status === 0 && found.stdout.trim() === version) return { file: local, args: [] }
  }
  return { file: process.platform === "win32" ? "npx.cmd" : "npx", args: ["-y", wanted] }
}

const isAlive = (pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === "EPERM"
  }
}

/** The process that the lock names, and whether nobody holds it any more; `undefined` where there is no lock. */
const lockHolder = () => {
  try {
    const holder = Number(fs.readFileSync(lockFile, "utf8"))
    // Without a name it was only just made, or its maker could not write it: the disk is full.
    const isStale = holder > 0 ? !isAlive(holder) : Date.now() - fs.statSync(lockFile).mtimeMs > 10_000
    return { holder, isStale }
  } catch (error) {
    if (error.code === "ENOENT") return undefined
    throw error
  }
}

/** Two installations at once would write over each other; the second waits for the first. */
const acquireLock = async () => {
  for (let announced = false;;) {
    let isMine = false
    try {
      const file = fs.openSync(lockFile, "wx")
      isMine = true
      try {
        fs.writeSync(file, String(process.pid))
      } finally {
        fs.closeSync(file)
      }
      return
    } catch (error) {
      if (isMine) fs.rmSync(lockFile, { force: true })
      if (isMine || error.code !== "EEXIST") throw error
    }
    const found = lockHolder()
    if (found === undefined) continue
    if (found.isStale) {
      fs.rmSync(lockFile, { force: true })
      continue
    }
    if (!announced) say(`another installation is running (process ${found.holder}; its lock is ${lockFile}); waiting for it`)
    announced = true
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

const install = async () => {
  const started = Date.now()
  fs.rmSync(stampFile, { force: true })
  const pnpm = pnpmCommand()
  say("installing dependencies (about 20 s and 800 MB the first time)")
  const result = await run(pnpm.file, [...pnpm.args, "install", "--frozen-lockfile", "--reporter=append-only"])
  if (result.code !== 0) {
    throw new BootstrapError(
      result.problem?.code === "ENOENT"
        ? `\`${pnpm.file}\` was not found. npm comes with Node; put its directory on the PATH and try again.`
        : `\`${[path.basename(pnpm.file), ...pnpm.args, "install"].join(" ")}\` ended with ${result.signal ?? `exit ${result.code}`}: ${explain(result.output)}`
    )
  }
  const node = nodeForWorkspace()
  fs.writeFileSync(stampFile, expectedStamp())
  say(`installed in ${((Date.now() - started) / 1000).toFixed(1)} s; running on Node ${probe(node).version}`)
}

/** Brings the clone to a state in which everything can run, and answers the Node to run it with. */
export const bootstrap = async () => {
  if (!isAtLeast(process.versions.node, minimumToStart)) {
    throw new BootstrapError(
      `Node ${process.versions.node} (${process.execPath}) is too old: need >= ${minimumToStart[0]}. Install a newer Node and try again.`
    )
  }
  if (!isInstalled()) {
    await acquireLock()
    try {
      if (!isInstalled()) await install()
    } finally {
      fs.rmSync(lockFile, { force: true })
    }
  }
  return nodeForWorkspace()
}

/** Runs a script's main function; a problem becomes one line and exit 1. */
export const main = (body) =>
  body().catch((error) => {
    say(
      error instanceof BootstrapError ? error.message
        : explanations[0][0].test(error.message) || explanations[1][0].test(error.message)
        ? `${error.message}: ${explain(error.message)}`
        : error.stack
    )
    process.exitCode = 1
  })

if (process.argv[1] !== undefined && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(bootstrap)
}
