/**
 * Codex's program: where it is and what version it has.
 */
import type { InstalledProgram } from "@turnpike/harness"
import * as path from "node:path"

/** The version that the real tests run. Any other is told in a notice. */
export const tested = "0.171.0"

const exe = process.platform === "win32" ? "codex.exe" : "codex"

/** How the npm package names the platforms, in its directory `vendor`. */
const triples: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
  "win32-x64": "x86_64-pc-windows-msvc",
  "win32-arm64": "aarch64-pc-windows-msvc"
}

/**
 * The native program behind the npm package's launcher: in the package of the
 * platform, beside it or within it. The launcher passes INT and TERM on, but not
 * its own death, after which Codex goes on with the turn.
 */
const nativeBehind = (launcher: string): ReadonlyArray<string> => {
  const scope = `${path.sep}@openai`
  const at = launcher.lastIndexOf(`${scope}${path.sep}codex${path.sep}`)
  const platform = `${process.platform}-${process.arch}`
  const triple = triples[platform]
  if (at === -1 || triple === undefined) return []
  const beside = launcher.slice(0, at + scope.length)
  const inside = ["vendor", triple, "bin", exe]
  return [
    path.join(beside, `codex-${platform}`, ...inside),
    path.join(beside, "codex", "node_modules", "@openai", `codex-${platform}`, ...inside),
    path.join(beside, "codex", ...inside)
  ]
}

export const description: InstalledProgram.Description = {
  harness: "codex",
  product: "Codex",
  names: ["codex"],
  places: ["~/.cargo/bin/codex"],
  nativeBehind,
  npmPackage: "@openai/codex",
  // "codex-cli 0.171.0"
  version: /^codex-cli (\d+\.\d+\.\d+\S*)\s*$/m,
  tested
}
