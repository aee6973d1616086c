/**
 * Bundles the turnpike command, effect and the workspace included, into `dist/bundle`.
 *
 * A folder of its own, because `tsc -b` owns `dist`. Imported lazily stays lazy: each `import()`
 * becomes a chunk that is read when a command needs it.
 */
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import { defineConfig } from "tsdown"

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Programs that the command starts as processes of their own; they lie beside it under their own names. */
const programs = ["harness-scripted"].flatMap((folder) => {
  const directory = here(`../${folder}/src/bin`)
  return fs.existsSync(directory)
    ? fs.readdirSync(directory).filter((file) => file.endsWith(".ts")).map((file) => [file.replace(/\.ts$/, ""), `${directory}/${file}`] as const)
    : []
})

export default defineConfig({
  entry: { bin: here("./src/bin.ts"), ...Object.fromEntries(programs) },
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
