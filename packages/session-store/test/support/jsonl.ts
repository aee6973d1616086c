/** Stores in directories of JSON lines, and what the suite of all stores cannot bring about there by itself. */
import type { Scalars } from "@turnpike/contract"
import { LogLine } from "@turnpike/kernel"
import { JsonlSessionStore } from "@turnpike/session-store"
import type { StoreSuite } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as path from "node:path"
import { generationOf, layoutOf, placeOf } from "../../src/internal/jsonl/layout.ts"
import { Directory } from "./directory.ts"

/** A store in a directory of its own. */
export const layer = Layer.unwrap(Effect.map(Directory, (directory) => JsonlSessionStore.layer({ directory }))).pipe(
  Layer.provideMerge(Directory.layer)
)

export const sessionIn = (directory: string, id: Scalars.SessionId): string => placeOf(layoutOf(directory), id).directory

/** The files of a log, the first writer's first. */
export const segmentsIn = (directory: string, id: Scalars.SessionId): ReadonlyArray<string> => {
  const own = sessionIn(directory, id)
  return fs.readdirSync(own)
    .flatMap((name) => generationOf(name) ?? [])
    .sort((one, other) => one - other)
    .map((generation) => path.join(own, `log.${generation}.jsonl`))
}

/** All that is in a directory, by its path. */
export const contentsOf = (directory: string): Readonly<Record<string, string>> =>
  Object.fromEntries(fs.readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const file = path.join(entry.parentPath, entry.name)
    return entry.isFile() ? [[path.relative(directory, file), fs.readFileSync(file, "latin1")]] : []
  }))

const linesOf = (file: string) => fs.readFileSync(file, "utf8").split("\n").slice(0, -1)

const within = (work: (directory: string) => void) => Effect.map(Directory, work)

export const hooks: Required<StoreSuite.Hooks<Directory>> = {
  expire: () =>
    within((directory) => {
      const { owners } = layoutOf(directory)
      for (const name of fs.readdirSync(owners)) {
        const file = path.join(owners, name)
        const owner = JSON.parse(fs.readFileSync(file, "utf8")) as object
        fs.writeFileSync(file, `${LogLine.encode({ ...owner, expires: 0 })}\n`)
      }
    }),
  damage: (id, seq) =>
    within((directory) => {
      for (const file of segmentsIn(directory, id)) {
        const damaged = linesOf(file).map((line) => line.startsWith(`{"seq":${seq},`) ? line.replace(`"time":`, `"tame":`) : line)
        fs.writeFileSync(file, `${damaged.join("\n")}\n`)
      }
    }),
  plant: (id, record) =>
    within((directory) => {
      const file = segmentsIn(directory, id).at(-1)
      if (file === undefined) throw new Error("there is no log")
      const { size } = fs.statSync(file)
      fs.appendFileSync(file, `${LogLine.encode({ log: "batch", events: 1, after: size, synced: size })}\n${LogLine.encode(record)}\n`)
    })
}
