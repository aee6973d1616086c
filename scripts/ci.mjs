/**
 * `.ci/run`: everything that can fail, in one go, on a machine where nothing was prepared.
 *
 * Depends on nothing and starts on Node 20. Only a failed installation ends it early; any other part
 * runs whatever became of those before it. A part that tests nothing is a failure, and so is one that
 * outlasts its limit: its whole process group is then killed. The last line is `N passed, N failed`.
 *
 * `node scripts/ci.mjs layers deno` runs those parts alone.
 */
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const results = path.join(root, "test-results")
const bin = path.join(root, "node_modules", ".bin")
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-ci-"))

/** A home of its own, so that nothing a person has set up here decides how a test ends. */
const home = path.join(scratch, "home")
fs.mkdirSync(home)

/** What prepares: with the caches of whoever calls. */
const preparing = {
  ...process.env,
  CI: "true",
  // A machine may have given this script no home at all.
  HOME: process.env.HOME ?? home,
  PATH: `${bin}${path.delimiter}${process.env.PATH ?? ""}`,
  NO_COLOR: "1",
  // The clone may belong to another user than the one who tests it.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*"
}

/** What tests. Where packages come from is the machine's affair, also in a home of their own. */
const environment = { ...preparing, HOME: home }
const npmSettings = path.join(preparing.HOME, ".npmrc")
if (environment.npm_config_userconfig === undefined && fs.existsSync(npmSettings)) environment.npm_config_userconfig = npmSettings
for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TURNPIKE_HOME", "FORCE_COLOR", "NODE_ENV"]) delete environment[name]

const minutes = (milliseconds) => `${(milliseconds / 60_000).toFixed(1)} min`
const say = (text) => process.stdout.write(`ci: ${text}\n`)

/** Runs a program in a process group of its own; its output is shown, and its stdout is answered as well. */
const run = (command, args, { env = environment, extra = {}, limitMinutes }) =>
  new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: { ...env, ...extra }, stdio: ["ignore", "pipe", "pipe"], detached: true })
    let stdout = ""
    let isOver = false
    const kill = () => {
      try {
        process.kill(-child.pid, "SIGKILL")
      } catch (error) {
        if (error.code !== "ESRCH") throw error
      }
    }
    const timer = setTimeout(() => {
      isOver = true
      say(`${command} ${args.join(" ")} is over its limit of ${limitMinutes} min and is killed`)
      kill()
    }, limitMinutes * 60_000)
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      process.stdout.write(chunk)
      stdout = (stdout + chunk).slice(-1_000_000)
    })
    child.stderr.on("data", (chunk) => process.stderr.write(chunk))
    const end = (ending) => {
      clearTimeout(timer)
      resolve({ ...ending, stdout, isOver })
    }
    child.on("error", (error) => end({ problem: error.message }))
    // Not "close": a process that outlives its part and holds the pipe must not hold up the rest.
    child.on("exit", (code, signal) => setTimeout(() => end({ code, signal }), 100))
  })

const endingOf = ({ code, isOver, problem, signal }) => isOver ? "over its limit" : problem ?? signal ?? `exit ${code}`

/** A suite of vitest, counted by its own report. The long ones name each test as it ends, so that a limit shows where it struck. */
const suite = (config, options) => async () => {
  const report = path.join(results, `${path.basename(config, ".config.ts")}.json`)
  fs.rmSync(report, { force: true })
  const ran = await run("vitest", ["run", "--config", config, `--reporter=${options.reporter ?? "default"}`, "--reporter=json", `--outputFile.json=${report}`], options)
  let passed = 0
  let failed = 0
  let skipped = 0
  if (fs.existsSync(report)) {
    for (const file of JSON.parse(fs.readFileSync(report, "utf8")).testResults) {
      const count = (status) => file.assertionResults.filter((each) => each.status === status).length
      passed += count("passed")
      failed += count("failed")
      skipped += file.assertionResults.length - count("passed") - count("failed")
      // A file that could not be loaded, or whose hooks failed, has no failed test to show for it.
      if (file.status === "failed" && count("failed") === 0) failed += 1
    }
  }
  if (ran.code !== 0 && failed === 0) failed += 1
  if (passed + failed === 0) failed += 1
  return { passed, failed, skipped, ending: endingOf(ran) }
}

/** A script that counts for itself: `N passed, N failed` is the last line it prints. */
const script = (file, options) => async () => {
  const ran = await run("node", [file], options)
  const counts = /(\d+) passed, (\d+) failed\s*$/.exec(ran.stdout)
  const passed = Number(counts?.[1] ?? 0)
  let failed = Number(counts?.[2] ?? 0)
  if (failed === 0 && (ran.code !== 0 || passed === 0)) failed += 1
  return { passed, failed, skipped: 0, ending: endingOf(ran) }
}

/** A preparation that has to succeed before a suite, which is not tried without it. */
const after = (file, next, options) => async () => {
  const ran = await run("node", [file], { ...options, env: preparing })
  return ran.code === 0 ? next() : { passed: 0, failed: 1, skipped: 0, ending: `${file}: ${endingOf(ran)}` }
}

/** What the suites use of the machine, and the Debian package that brings it. */
const systemPackages = [
  ["tini", "tini", ["--version"]],
  ["bubblewrap", "bwrap", ["--version"]],
  ["python3-jsonschema", "/usr/bin/python3", ["-W", "ignore", "-c", "import jsonschema; assert jsonschema.Draft202012Validator"]],
  ["git", "git", ["--version"]],
  ["procps", "ps", ["--version"]],
  ["strace", "strace", ["-V"]],
  ["util-linux", "setpriv", ["--version"]]
]
const missingPackages = () =>
  systemPackages.filter(([, command, args]) => spawnSync(command, args, { env: environment, stdio: "ignore" }).status !== 0).map(([name]) => name)

const system = async () => {
  const missing = missingPackages()
  if (missing.length > 0) {
    say(`installing ${missing.join(", ")}`)
    if (spawnSync("apt-get", ["--version"], { stdio: "ignore" }).status !== 0) {
      say(`this machine has no apt-get; install what Debian calls ${missing.join(", ")} by hand and try again`)
      return { passed: 0, failed: 1, skipped: 0, ending: "not Debian" }
    }
    const options = { extra: { DEBIAN_FRONTEND: "noninteractive" }, limitMinutes: 5 }
    const updated = await run("apt-get", ["-q", "update"], options)
    if (updated.code !== 0) say(`apt-get update ended with ${endingOf(updated)}; trying with the lists that are here`)
    await run("apt-get", ["-q", "install", "-y", "--no-install-recommends", ...missing], options)
  }
  const absent = missingPackages()
  if (absent.length > 0) say(`still missing: ${absent.join(", ")} (root is needed to install them)`)
  return { passed: absent.length === 0 ? 1 : 0, failed: absent.length === 0 ? 0 : 1, skipped: 0, ending: absent.length === 0 ? "exit 0" : "incomplete" }
}

/** The first thing a stranger does. */
const start = async () => {
  const started = Date.now()
  const ran = await run("npm", ["start", "--silent"], { limitMinutes: 2 })
  const isGood = ran.code === 0 && ran.stdout.trim() !== ""
  say(`npm start took ${((Date.now() - started) / 1000).toFixed(1)} s`)
  return { passed: isGood ? 1 : 0, failed: isGood ? 0 : 1, skipped: 0, ending: ran.stdout.trim() === "" ? "showed nothing" : endingOf(ran) }
}

const parts = {
  system,
  start,
  check: script("scripts/check.mjs", { limitMinutes: 5 }),
  test: suite("vitest.config.ts", { limitMinutes: 8 }),
  layers: script("scripts/layers.mjs", { limitMinutes: 3 }),
  packages: suite("vitest.packaging.config.ts", { limitMinutes: 5 }),
  deno: after("scripts/install-deno.mjs", suite("vitest.deno.config.ts", { limitMinutes: 5 }), { limitMinutes: 5 }),
  slow: after(
    "scripts/install-deno.mjs",
    after(
      "scripts/install-postgres.mjs",
      suite("vitest.slow.config.ts", { extra: { TURNPIKE_REQUIRE_CONTAINMENT: "1" }, limitMinutes: 15, reporter: "verbose" }),
      { limitMinutes: 5 }
    ),
    { limitMinutes: 5 }
  ),
  real: after("scripts/install-real.mjs", suite("vitest.real.config.ts", { extra: { TURNPIKE_REQUIRE_CONTAINMENT: "1" }, limitMinutes: 15, reporter: "verbose" }), { limitMinutes: 5 })
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => parts[name] === undefined)
if (unknown.length > 0) {
  say(`there is no part ${unknown.join(", ")}; the parts are ${Object.keys(parts).join(", ")}`)
  process.exit(2)
}

fs.mkdirSync(results, { recursive: true })
const begun = Date.now()
const rows = []
const add = (name, counts, started) => rows.push({ name, ...counts, took: Date.now() - started })

const finish = () => {
  const total = rows.reduce((sum, row) => ({ passed: sum.passed + row.passed, failed: sum.failed + row.failed, skipped: sum.skipped + row.skipped }), { passed: 0, failed: 0, skipped: 0 })
  process.stdout.write("\n")
  for (const { ending, failed, name, passed, skipped, took } of rows) {
    say(`${name.padEnd(10)} ${minutes(took).padStart(9)}  ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}${failed > 0 ? `  (${ending})` : ""}`)
  }
  say(`${"all".padEnd(10)} ${minutes(Date.now() - begun).padStart(9)}`)
  fs.rmSync(scratch, { recursive: true, force: true })
  process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`)
  process.exitCode = total.failed > 0 ? 1 : 0
}

say("bootstrap")
const installed = await run(process.execPath, ["scripts/bootstrap.mjs"], { env: preparing, limitMinutes: 10 })
add("bootstrap", { passed: installed.code === 0 ? 1 : 0, failed: installed.code === 0 ? 0 : 1, skipped: 0, ending: endingOf(installed) }, begun)
if (installed.code === 0) {
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    process.stdout.write("\n")
    say(name)
    const started = Date.now()
    add(name, await part(), started)
    // Figures for people; they pass or fail nothing.
    if (name === "packages") await run("node", ["scripts/measure-start.mjs"], { limitMinutes: 2 })
  }
}
finish()
