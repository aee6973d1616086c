/**
 * Bundles the turnpike command, effect and the workspace included, into `dist/bundle`.
 *
 * A folder of its own, because `tsc -b` owns `dist`. Imported lazily stays lazy: each `import()`
 * becomes a chunk that is read when a command needs it.
 */
import { fileURLToPath } from "node:url"
import { defineConfig } from "tsdown"

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  entry: { bin: here("./src/bin.ts") },
  outDir: here("./dist/bundle"),
  format: "esm",
  platform: "node",
  target: "node22.19",
  dts: false,
  minify: true,
  treeshake: true,
  sourcemap: false,
  deps: { alwaysBundle: [/.*/] },
  outExtensions: () => ({ js: ".js" }),
  inputOptions: { resolve: { conditionNames: ["turnpike-source", "node", "import", "default"] } }
})
