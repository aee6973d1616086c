/**
 * A file system in memory, for what a real one does too seldom: each call can be
 * refused, and the power can go, which forgets what was not synced.
 */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import { type File, FileError, type Files, type How } from "../../src/internal/jsonl/files.ts"

interface Node {
  readonly identity: string
  bytes: Buffer
  /** What is on disk. */
  synced: Buffer
  /** Where what a sync that failed was to write begins and ends: no other one does. */
  lost: ReadonlyArray<readonly [from: number, to: number]>
}

/** A change of names. On disk once a directory that it is in was synced. */
type Change =
  | { readonly kind: "name"; readonly path: string; readonly node: Node; isSynced: boolean }
  | { readonly kind: "directory"; readonly path: string; isSynced: boolean }
  | { readonly kind: "gone"; readonly path: string; isSynced: boolean }
  | { readonly kind: "moved"; readonly path: string; readonly to: string; isSynced: boolean }

export interface Disk {
  /** Directories and files by their paths. */
  readonly names: Map<string, Node | "directory">
  readonly changes: Array<Change>
}

const isWithin = (directory: string, one: string): boolean => one === directory || one.startsWith(`${directory}/`)

/** Does a change, and answers why it cannot be done. */
const change = (names: Disk["names"], one: Change): string | undefined => {
  if (names.get(path.dirname(one.path)) !== "directory") return "ENOENT"
  switch (one.kind) {
    case "name":
      if (names.has(one.path)) return "EEXIST"
      names.set(one.path, one.node)
      return undefined
    case "directory":
      names.set(one.path, "directory")
      return undefined
    case "gone":
      for (const name of [...names.keys()]) if (isWithin(one.path, name)) names.delete(name)
      return undefined
    case "moved": {
      if (!names.has(one.path) || names.get(path.dirname(one.to)) !== "directory") return "ENOENT"
      if (names.get(one.path) === "directory" && [...names.keys()].some((name) => name !== one.to && isWithin(one.to, name))) return "ENOTEMPTY"
      for (const [name, node] of [...names]) {
        if (!isWithin(one.path, name)) continue
        names.delete(name)
        names.set(`${one.to}${name.slice(one.path.length)}`, node)
      }
    }
  }
  return undefined
}

export const empty = (): Disk => ({ names: new Map([["/", "directory"]]), changes: [] })

/** Another disk, with the same on it. */
export const copyOf = ({ names }: Disk): Disk => ({
  names: new Map([...names].map(([name, node]) => [name, node === "directory" ? node : { ...node }])),
  changes: []
})

/** The file of this name, which is there. */
export const fileOf = ({ names }: Disk, name: string): Node => {
  const node = names.get(name)
  if (node === undefined || node === "directory") throw new Error(`there is no file ${name}`)
  return node
}

export const bytesOf = (disk: Disk, name: string): Buffer => fileOf(disk, name).bytes

/** Lets a file have other bytes. */
export const rewrite = (disk: Disk, name: string, bytesFrom: (bytes: Buffer) => Uint8Array) => {
  const node = fileOf(disk, name)
  node.bytes = Buffer.from(bytesFrom(Buffer.from(node.bytes)))
}

let count = 0

const errorOf = (operation: string, name: string, code: string): FileError =>
  new FileError({ operation, path: name, code, text: `${code}: ${operation} '${name}'` })

export const filesOf = ({ changes, names }: Disk): Files => {
  const changed = (operation: string, one: Change): Effect.Effect<void, FileError> =>
    Effect.suspend(() => {
      const code = change(names, one)
      if (code !== undefined) return Effect.fail(errorOf(operation, one.path, code))
      changes.push(one)
      return Effect.void
    })

  /** Works on a directory that is there. */
  const inDirectory = <A>(operation: string, name: string, work: () => A): Effect.Effect<A, FileError> =>
    Effect.suspend(() => names.get(name) === "directory" ? Effect.sync(work) : Effect.fail(errorOf(operation, name, "ENOENT")))

  const opened = (name: string, node: Node): File => ({
    path: name,
    write: (bytes) =>
      Effect.sync(() => {
        node.bytes = Buffer.concat([node.bytes, bytes])
        return bytes.length
      }),
    read: (position, length) => Effect.sync(() => Buffer.from(node.bytes.subarray(position, position + length))),
    sync: Effect.sync(() => {
      node.synced = Buffer.from(node.bytes)
      for (const [from, to] of node.lost) node.synced.fill(0, Math.min(from, node.bytes.length), Math.min(to, node.bytes.length))
    }),
    truncate: (length) =>
      Effect.sync(() => {
        node.bytes = node.bytes.subarray(0, length)
        node.lost = node.lost.filter(([from]) => from < length)
      }),
    stat: Effect.sync(() => ({ identity: node.identity, size: node.bytes.length })),
    close: Effect.void
  })

  return {
    open: (name, how: How) =>
      Effect.suspend(() => {
        const found = names.get(name)
        if (how === "create") {
          const nothing = Buffer.alloc(0)
          const node: Node = { identity: `${++count}`, bytes: nothing, synced: nothing, lost: [] }
          return Effect.as(changed("open", { kind: "name", path: name, node, isSynced: false }), opened(name, node))
        }
        if (found === "directory") return Effect.fail(errorOf("open", name, "EISDIR"))
        return found === undefined ? Effect.fail(errorOf("open", name, "ENOENT")) : Effect.succeed(opened(name, found))
      }),
    stat: (name) =>
      Effect.sync(() => {
        const found = names.get(name)
        return found === undefined ? undefined : found === "directory" ? { identity: name, size: 0 } : { identity: found.identity, size: found.bytes.length }
      }),
    rewrite: (name, start) =>
      Effect.suspend(() => {
        const node = names.get(name)
        if (node === undefined || node === "directory") return Effect.fail(errorOf("open", name, "ENOENT"))
        node.lost = node.lost.flatMap(([from, to]) => from < start ? [[from, Math.min(to, start)] as const] : [])
        return Effect.void
      }),
    link: (from, as) =>
      Effect.suspend(() => {
        const node = names.get(from)
        return node === undefined || node === "directory"
          ? Effect.fail(errorOf("link", as, "ENOENT"))
          : changed("link", { kind: "name", path: as, node, isSynced: false })
      }),
    rename: (from, to) => changed("rename", { kind: "moved", path: from, to, isSynced: false }),
    unlink: (name) => names.has(name) ? changed("unlink", { kind: "gone", path: name, isSynced: false }) : Effect.fail(errorOf("unlink", name, "ENOENT")),
    makeDirectory: (name) =>
      Effect.gen(function*() {
        const missing: Array<string> = []
        for (let at = name; !names.has(at); at = path.dirname(at)) missing.unshift(at)
        for (const one of missing) yield* changed("mkdir", { kind: "directory", path: one, isSynced: false })
      }),
    list: (name) =>
      inDirectory("readdir", name, () => [...names.keys()].filter((one) => one !== name && path.dirname(one) === name).map((one) => path.basename(one))),
    remove: (name) => names.has(name) ? changed("rm", { kind: "gone", path: name, isSynced: false }) : Effect.void,
    syncDirectory: (name) =>
      inDirectory("sync", name, () => {
        for (const one of changes) if (path.dirname(one.path) === name || (one.kind === "moved" && path.dirname(one.to) === name)) one.isSynced = true
      })
  }
}

/** How a disk forgets: a file keeps what was synced, and of the rest a beginning; or it has holes in the rest, too. */
export type Loss = "beginning" | "holes"

const sector = 512

/** What is left after the power has gone. */
export const powerLost = ({ changes }: Disk, random: () => number, loss: Loss): Disk => {
  const left = empty()
  // Names reach the disk in their order, and those that were not synced for a while.
  const kept = Math.floor(random() * (changes.length + 1))
  const nodes = new Map<Node, Node>()
  const survived = (node: Node): Node => {
    const known = nodes.get(node)
    if (known !== undefined) return known
    const { bytes, synced } = node
    let now = synced
    if (bytes.length >= synced.length && (node.lost.length > 0 || bytes.subarray(0, synced.length).equals(synced))) {
      now = Buffer.from(bytes.subarray(0, synced.length + Math.floor(random() * (bytes.length - synced.length + 1))))
      now.set(synced)
      if (loss === "holes") {
        for (let at = synced.length; at < now.length; at += sector - at % sector) {
          if (random() < 0.3) now.fill(0, at, Math.min(now.length, at + sector - at % sector))
        }
      }
    } else if (random() < 0.5) now = Buffer.from(bytes)
    const one: Node = { identity: `${++count}`, bytes: now, synced: now, lost: [] }
    nodes.set(node, one)
    return one
  }
  for (const [index, one] of changes.entries()) {
    if (index >= kept && !one.isSynced) continue
    // A name whose directory the disk has forgotten is forgotten with it.
    change(left.names, one.kind === "name" ? { ...one, node: survived(one.node) } : one)
  }
  return left
}

/** What becomes of a call of a file system, the first of which is number 1; `name` is the path that is written, or made. */
export type Meddle = (operation: keyof Files | Exclude<keyof File, "path">, nth: number, name: string) => Refusal | undefined

/** What becomes of a call: it is not done; or it is, partly or wholly, and fails all the same; or a sync forgets what it was to do. */
export interface Refusal {
  readonly code: string
  readonly done?: "partly" | "wholly" | "never"
}

/** Lets a file's next syncs write nothing of what was not synced yet, as a system does that could not write it once. */
const forget = (disk: Disk, name: string) =>
  Effect.sync(() => {
    const node = fileOf(disk, name)
    node.lost = [...node.lost, [node.synced.length, node.bytes.length]]
  })

/** The files of a disk, of whose calls some are refused. */
export const refusing = (disk: Disk, meddle: Meddle): Files => {
  const files = filesOf(disk)
  let calls = 0

  const asked = <A>(operation: Parameters<Meddle>[0], name: string, work: Effect.Effect<A, FileError>, part?: Effect.Effect<A, FileError>): Effect.Effect<A, FileError> =>
    Effect.suspend(() => {
      const refusal = meddle(operation, ++calls, name)
      if (refusal === undefined) return work
      const fail = Effect.fail(errorOf(operation, name, refusal.code))
      if (refusal.done === "never" && operation === "sync") return Effect.andThen(forget(disk, name), fail)
      if (refusal.done === "wholly") return Effect.andThen(work, fail)
      // What is written partly says so; the next write fails.
      return refusal.done === "partly" && part !== undefined ? part : fail
    })

  const within = (file: File): File => ({
    path: file.path,
    write: (bytes) => asked("write", file.path, file.write(bytes), file.write(bytes.subarray(0, bytes.length >> 1))),
    read: (position, length) => asked("read", file.path, file.read(position, length)),
    sync: asked("sync", file.path, file.sync),
    truncate: (length) => asked("truncate", file.path, file.truncate(length)),
    stat: asked("stat", file.path, file.stat),
    close: file.close
  })

  return {
    open: (name, how) => Effect.map(asked("open", name, files.open(name, how)), within),
    stat: (name) => asked("stat", name, files.stat(name)),
    rewrite: (name, from) => asked("rewrite", name, files.rewrite(name, from)),
    link: (from, as) => asked("link", as, files.link(from, as)),
    rename: (from, to) => asked("rename", to, files.rename(from, to)),
    unlink: (name) => asked("unlink", name, files.unlink(name)),
    makeDirectory: (name) => asked("makeDirectory", name, files.makeDirectory(name)),
    list: (name) => asked("list", name, files.list(name)),
    remove: (name) => asked("remove", name, files.remove(name)),
    syncDirectory: (name) => asked("syncDirectory", name, files.syncDirectory(name))
  }
}
