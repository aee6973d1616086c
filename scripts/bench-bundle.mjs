/** Bundles the turnpike command as it ships into the folder that is named. */
import { build } from "tsdown"
import config from "../packages/cli/tsdown.config.ts"

await build({ ...config, config: false, outDir: process.argv[2], logLevel: "error" })
