/** Directories and files that live as long as a test. */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** A new empty directory. */
export const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-cli-"))),
  (made) =>
    Effect.sync(() => {
      fs.chmodSync(made, 0o700)
      fs.rmSync(made, { recursive: true, force: true })
    })
)

/** A file of this name and content, in a directory of its own. */
export const file = (name: string, content: string | Uint8Array) =>
  Effect.map(directory, (made) => {
    const target = path.join(made, name)
    fs.writeFileSync(target, content)
    return target
  })
