/** The programs of the tests, bundled: they start several times as fast as from the sources. */
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { build } from "tsdown"

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export interface Bundle {
  /** What Node.js runs. */
  readonly file: string
  readonly remove: () => void
}

export const bundle = async (): Promise<Bundle> => {
  // Within the package, so that what is loaded when it is needed is found; in a folder that is never packed.
  const folder = here(`../../node_modules/.turnpike-test-${process.pid}`)
  await build({
    entry: { main: here("programs/main.ts") },
    outDir: folder,
    format: "esm",
    platform: "node",
    target: "node22.19",
    dts: false,
    // As what is shipped: the program of the thread that writes is text of it.
    minify: true,
    treeshake: true,
    sourcemap: false,
    deps: { alwaysBundle: [/.*/] },
    outExtensions: () => ({ js: ".mjs" }),
    inputOptions: { resolve: { conditionNames: ["turnpike-source", "node", "import", "default"] } },
    config: false,
    logLevel: "error"
  })
  return { file: `${folder}/main.mjs`, remove: () => fs.rmSync(folder, { recursive: true, force: true }) }
}
