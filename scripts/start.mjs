/**
 * `npm start`: installs what is needed, then runs one task on the scripted harness.
 *
 * Arguments go to `turnpike` instead: `npm start -- run --harness claude "…"`. Signals reach the
 * command, and its exit code is this script's.
 */
import { spawn } from "node:child_process"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { bootstrap, main } from "./bootstrap.mjs"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const demonstration = ["run", "--harness", "scripted", "--format", "text", "Say hello and show what a turn looks like"]

await main(async () => {
  const node = await bootstrap()
  const args = process.argv.length > 2 ? process.argv.slice(2) : demonstration
  const shown = args.map((argument) => /^[\w./:=@-]+$/.test(argument) ? argument : JSON.stringify(argument)).join(" ")
  process.stderr.write(`\n$ turnpike ${shown}\n`)
  const child = spawn(node, [path.join(root, "packages/cli/bin/turnpike.mjs"), ...args], { stdio: "inherit" })
  // A terminal sends its interrupt to the whole foreground group, so the command has it already;
  // a termination is sent to this process alone.
  process.on("SIGINT", () => {})
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
  const ending = await new Promise((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal }))
  })
  if (ending.signal !== null) {
    process.stderr.write(`turnpike was ended by ${ending.signal}\n`)
    process.exitCode = 1
  } else {
    process.exitCode = ending.code
  }
  if (process.argv.length === 2 && ending.code === 0) {
    process.stderr.write(
      "\nThat was a scripted agent. With your own: npx turnpike run --harness claude \"…\"\n"
        + "Not sure what is installed here?        npx turnpike doctor\n"
    )
  }
})
