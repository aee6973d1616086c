/**
 * Runs named checks one after the other, says of each whether it held, and counts.
 *
 * A check that fails doesn't stop the ones after it. The last line is `N passed, N failed`, and the
 * exit code is 1 when any failed.
 */
import { spawnSync } from "node:child_process"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

/** The tools of the workspace first, and among them its Node. */
export const environment = {
  ...process.env,
  PATH: `${path.join(root, "node_modules", ".bin")}${path.delimiter}${process.env.PATH ?? ""}`
}

/**
 * The machine's own Node and npm first. An npm that runs on the workspace's Node looks for its
 * global settings, registry and certificates among them, where nobody has put any.
 */
export const machineEnvironment = {
  ...process.env,
  PATH: (process.env.PATH ?? "").split(path.delimiter).filter((directory) => !directory.endsWith(path.join("node_modules", ".bin"))).join(path.delimiter)
}

/** Why a check did not hold; its text is all there is to say. */
export class CheckFailed extends Error {}

/** Runs a program and answers its output; fails when it can't start or exits otherwise than it should. */
export const tool = (command, args, { cwd = root, exitCodes = [0] } = {}) => {
  const result = spawnSync(command, args, { cwd, env: environment, encoding: "utf8", maxBuffer: 256 * 1024 * 1024 })
  if (result.error !== undefined) throw new CheckFailed(`${command} could not be started: ${result.error.message}`)
  if (!exitCodes.includes(result.status)) {
    throw new CheckFailed(`${command} ${args.join(" ")} ended with ${result.signal ?? `exit ${result.status}`}\n${result.stdout}${result.stderr}`.trimEnd())
  }
  return { stdout: result.stdout, stderr: result.stderr, status: result.status }
}

/** Fails the check with these lines when there are any. */
export const expectNone = (what, lines) => {
  if (lines.length > 0) throw new CheckFailed([what, ...lines.map((line) => `  ${line}`)].join("\n"))
}

/** Runs all checks; each may answer a short fact about what it looked at. */
export const runSteps = async (steps) => {
  let failed = 0
  for (const [name, check] of steps) {
    const started = Date.now()
    try {
      const fact = await check()
      console.log(`ok      ${name}${fact === undefined ? "" : ` (${fact})`} ${((Date.now() - started) / 1000).toFixed(1)} s`)
    } catch (error) {
      failed += 1
      console.log(`not ok  ${name}\n${error instanceof CheckFailed ? error.message : error.stack}`)
    }
  }
  console.log(`${steps.length - failed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
}
