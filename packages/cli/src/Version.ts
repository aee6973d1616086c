/**
 * The version of this installation, from the manifest that it came with.
 *
 * The manifest stands above this file: one folder in the sources, two in the
 * bundle.
 */
import * as fs from "node:fs"

export const read = (): string => {
  for (const place of ["../package.json", "../../package.json"]) {
    try {
      const manifest: unknown = JSON.parse(fs.readFileSync(new URL(place, import.meta.url), "utf8"))
      if (typeof manifest === "object" && manifest !== null && "name" in manifest && manifest.name === "@turnpike/cli" && "version" in manifest) {
        return String(manifest.version)
      }
    } catch {
      // Not here; the next place.
    }
  }
  return "0.0.0-unknown"
}
