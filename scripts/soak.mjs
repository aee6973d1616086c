/**
 * `npm run soak`: one warm session for an hour and 10 000 turns; see test/bench/soak.ts for what it
 * looks at, and `npm run soak -- --help` for what can be chosen.
 */
import { main } from "./bootstrap.mjs"
import { bundle, run } from "./bench-prepare.mjs"

const args = process.argv.slice(2)
await main(async () => {
  process.exitCode = await run("soak.ts", args, args.includes("--help") ? undefined : bundle())
})
