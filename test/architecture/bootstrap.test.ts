import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { root } from "./support/Workspace.ts"

/** A clone with one package and an `npx` that does what it is told instead of installing. */
let clone = ""

const write = (file: string, text: string, mode = 0o644) => {
  fs.mkdirSync(path.dirname(path.join(clone, file)), { recursive: true })
  fs.writeFileSync(path.join(clone, file), text, { mode })
}

beforeEach(() => {
  clone = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-bootstrap-"))
  write("scripts/bootstrap.mjs", fs.readFileSync(path.join(root, "scripts/bootstrap.mjs"), "utf8"))
  write("package.json", `{"packageManager":"pnpm@12.4.2"}`)
  write("pnpm-lock.yaml", "lock: 1\n")
  write("packages/one/package.json", "{}")
  // Claims a version for the process that loads it, as an old Node would.
  write("pretend.cjs", `Object.defineProperty(process, "versions", { value: { ...process.versions, node: process.env.PRETENDED } })`)
})
afterEach(() => fs.rmSync(clone, { recursive: true }))

const calls = () => fs.existsSync(path.join(clone, "calls")) ? fs.readFileSync(path.join(clone, "calls"), "utf8").trimEnd().split("\n") : []
const stamp = () => path.join(clone, "node_modules/.turnpike-installed")

const npx = (body: string) => write("bin/npx", `#!/bin/sh\necho "$@" >>"${clone}/calls"\nmkdir -p "${clone}/node_modules"\n${body}\n`, 0o755)

const bootstrap = (env: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>((resolve, reject) => {
    const child = spawn(process.execPath, [path.join(clone, "scripts/bootstrap.mjs")], {
      env: { PATH: `${path.join(clone, "bin")}:/usr/bin:/bin`, HOME: clone, ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => stdout += chunk)
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => stderr += chunk)
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, stdout, stderr }))
  })

describe("bootstrap", () => {
  it("installs once, and again when the lockfile or a manifest changes", async () => {
    npx("exit 0")
    const install = "-y pnpm@12.4.2 install --frozen-lockfile --reporter=append-only"
    assert.deepStrictEqual(await bootstrap().then(({ code, stdout }) => ({ code, stdout })), { code: 0, stdout: "" })
    assert.deepStrictEqual(await bootstrap(), { code: 0, stdout: "", stderr: "" })
    assert.deepStrictEqual(calls(), [install])
    write("pnpm-lock.yaml", "lock: 2\n")
    await bootstrap()
    write("packages/two/package.json", "{}")
    await bootstrap()
    assert.deepStrictEqual(calls(), [install, install, install])
  })

  it("installs once when it is started twice at the same time", async () => {
    npx("sleep 1; exit 0")
    const both = await Promise.all([bootstrap(), bootstrap()])
    assert.deepStrictEqual(both.map(({ code }) => code), [0, 0])
    assert.strictEqual(calls().length, 1)
  })

  it("goes on after an installation that was killed", async () => {
    npx("exit 0")
    // No process has this id: it is above the largest that Linux gives.
    write(".turnpike-installing", "4194305")
    assert.strictEqual((await bootstrap()).code, 0)
    assert.isTrue(fs.existsSync(stamp()))
    assert.isFalse(fs.existsSync(path.join(clone, ".turnpike-installing")))
  })

  it("goes on after an installation that could not even write its name", async () => {
    npx("exit 0")
    write(".turnpike-installing", "")
    const past = new Date(Date.now() - 60_000)
    fs.utimesSync(path.join(clone, ".turnpike-installing"), past, past)
    assert.strictEqual((await bootstrap()).code, 0)
    assert.isFalse(fs.existsSync(path.join(clone, ".turnpike-installing")))
  })

  it.each([
    ["the network is gone", "ERR_PNPM_META_FETCH_FAIL getaddrinfo ENOTFOUND", /npm registry cannot be reached/],
    ["the disk is full", "ENOSPC: no space left on device, write", /the disk is full/],
    ["the home cannot be written", "EACCES: permission denied, mkdir", /cannot be written/],
    ["the lockfile is old", "ERR_PNPM_OUTDATED_LOCKFILE Cannot install with frozen-lockfile", /does not match the manifests/],
    ["nobody knows why", "it is Monday", /ended with exit 7: its output is above/]
  ])("says so when %s, and leaves no mark of success", async (_, output, message) => {
    npx(`echo "${output}" >&2; exit 7`)
    const { code, stderr, stdout } = await bootstrap()
    assert.deepStrictEqual({ code, stdout, stamped: fs.existsSync(stamp()) }, { code: 1, stdout: "", stamped: false })
    assert.include(stderr, output)
    assert.match(stderr.trimEnd().split("\n").at(-1) ?? "", message)
  })

  it("says so when there is no npm", async () => {
    const { code, stderr } = await bootstrap({ PATH: path.join(clone, "bin") })
    assert.strictEqual(code, 1)
    assert.match(stderr, /`npx` was not found/)
  })

  it("refuses a Node that is too old to start with", async () => {
    npx("exit 0")
    const { code, stderr } = await bootstrap({ NODE_OPTIONS: `--require=${path.join(clone, "pretend.cjs")}`, PRETENDED: "18.20.8" })
    assert.strictEqual(code, 1)
    assert.match(stderr, /^bootstrap: Node 18\.20\.8 \(.*\) is too old: need >= 20\. Install a newer Node and try again\.\n$/)
    assert.deepStrictEqual(calls(), [])
  })

  it("refuses to run the workspace on Node 20 where no newer one came with the installation", async () => {
    npx("exit 0")
    const { code, stderr } = await bootstrap({ NODE_OPTIONS: `--require=${path.join(clone, "pretend.cjs")}`, PRETENDED: "20.20.2" })
    assert.strictEqual(code, 1)
    assert.match(stderr, /Node 20\.20\.2 \(.*\) is too old to run Turnpike: need >= 22\.19/)
    assert.isFalse(fs.existsSync(stamp()))
  })

  it("says so when the Node that came with the installation does not run here", async () => {
    npx(`mkdir -p "${clone}/node_modules/.bin"; printf '#!/bin/sh\\necho "not found: ld-linux" >&2; exit 127\\n' >"${clone}/node_modules/.bin/node"; chmod +x "${clone}/node_modules/.bin/node"`)
    const { code, stderr } = await bootstrap()
    assert.strictEqual(code, 1)
    assert.match(stderr, /does not run here \(not found: ld-linux\)/)
    assert.isFalse(fs.existsSync(stamp()))
  })
})
