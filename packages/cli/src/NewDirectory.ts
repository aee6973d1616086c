/**
 * Makes a directory and those above it that are missing.
 *
 * Node's own recursive `mkdir` never returns on a file system that answers
 * ENOENT to every new entry, such as `/proc` (Node 24.22); this one throws what
 * the system says.
 */
import * as fs from "node:fs"
import * as path from "node:path"

/** What it makes has mode 0700; what exists stays as it is. Throws a `NodeJS.ErrnoException`. */
export const make = (directory: string): void => {
  const missing: Array<string> = []
  for (let at = path.resolve(directory); !fs.existsSync(at) && path.dirname(at) !== at; at = path.dirname(at)) missing.unshift(at)
  for (const each of missing) {
    try {
      fs.mkdirSync(each, { mode: 0o700 })
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    }
  }
  if (!fs.statSync(directory).isDirectory()) {
    throw Object.assign(new Error(`${directory} is not a directory`), { code: "EEXIST" })
  }
}
