/**
 * `npm run bench`: installs what the chosen benchmarks need, bundles the command as it ships, and runs
 * test/bench; `npm run bench -- --help` says what can be chosen.
 */
import { spawnSync } from "node:child_process"
import * as path from "node:path"
import { main, nodeForWorkspace } from "./bootstrap.mjs"
import { bundle, installPeers, installReal, run } from "./bench-prepare.mjs"
import { environment, root } from "./steps.mjs"

const args = process.argv.slice(2)

/** What the chosen benchmarks need; undefined where the arguments ask for no benchmark, or for none that there is. */
const needs = () => {
  if (args.includes("--help") || args.includes("-h")) return undefined
  const asked = spawnSync(nodeForWorkspace(), ["--conditions=turnpike-source", path.join(root, "test/bench/main.ts"), "--needs", ...args], { env: environment, encoding: "utf8" })
  return asked.status === 0 ? asked.stdout.split("\n") : undefined
}

await main(async () => {
  const wanted = needs()
  if (wanted?.includes("real")) installReal()
  if (wanted?.includes("peers")) installPeers()
  process.exitCode = await run("main.ts", args, wanted === undefined ? undefined : bundle())
})
