/**
 * `npm run soak:store`: the stores of sessions for longer than the slow suite has time for; see
 * packages/session-store/test/support/soak.ts for what it looks at, and `npm run soak:store -- --help` for
 * what can be chosen. Needs what the slow suite needs: Deno and PostgreSQL are installed, strace has to be there.
 */
import { spawn, spawnSync } from "node:child_process"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { BootstrapError, main, nodeForWorkspace } from "./bootstrap.mjs"
import { environment, root } from "./steps.mjs"

const args = process.argv.slice(2)

await main(async () => {
  if (!args.includes("--help")) {
    for (const script of ["install-deno.mjs", "install-postgres.mjs"]) {
      const { status } = spawnSync(process.execPath, [fileURLToPath(new URL(script, import.meta.url))], { stdio: ["ignore", "ignore", "inherit"] })
      if (status !== 0) throw new BootstrapError(`scripts/${script} did not end well; what it said is above`)
    }
  }
  const program = path.join(root, "packages/session-store/test/support/soak.ts")
  const child = spawn(nodeForWorkspace(), ["--conditions=turnpike-source", program, ...args], { cwd: process.cwd(), env: environment, stdio: "inherit" })
  process.exitCode = await new Promise((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code) => resolve(code ?? 1))
  })
})
