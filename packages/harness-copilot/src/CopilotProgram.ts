/** Copilot's program: where it is and what version it has. */
import type { InstalledProgram } from "@turnpike/harness"
import * as path from "node:path"

/** The version that the real tests run. */
export const tested = "1.0.102"

const exe = process.platform === "win32" ? "copilot.exe" : "copilot"

/**
 * The native programs behind the npm package's loader: the package of the
 * platform, beside it or within it. The loader waits for the native program
 * without passing signals on, so it must not stand between.
 */
const nativeBehind = (launcher: string): ReadonlyArray<string> => {
  const scope = `${path.sep}@github${path.sep}`
  const at = launcher.lastIndexOf(`${scope}copilot${path.sep}`)
  if (at === -1) return []
  const directory = launcher.slice(0, at + scope.length)
  return (process.platform === "linux" ? ["linux", "linuxmusl"] : [process.platform]).flatMap((platform) => {
    const native = `copilot-${platform}-${process.arch}`
    return [path.join(directory, native, exe), path.join(directory, "copilot", "node_modules", "@github", native, exe)]
  })
}

export const description: InstalledProgram.Description = {
  harness: "copilot",
  product: "Copilot",
  names: ["copilot"],
  nativeBehind,
  npmPackage: "@github/copilot",
  // "GitHub Copilot CLI 1.0.102."
  version: /^GitHub Copilot CLI (\d+\.\d+\.\d+)/m,
  tested,
  // It would look for a newer version, and could become that one.
  environment: { COPILOT_AUTO_UPDATE: "false" }
}
