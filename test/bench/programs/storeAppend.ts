/**
 * Appends batches of events, each on disk before the next, in one of several ways; then all of
 * it is read again by the same way's reader. As many batches as are asked for, after some that
 * are not counted.
 */
import type { SessionEvent } from "@turnpike/contract"
import { SessionLog, SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as zlib from "node:zlib"
import { layerOf, type StoreName } from "../../../packages/session-store/test/support/programs/stores.ts"
import { answer, digest, timed } from "../support/answer.ts"
import * as Logs from "./storeLogs.ts"

export type Way =
  /** The store's own writer. */
  | { readonly kind: "store"; readonly store: StoreName }
  /** The log that a driver writes to, which checks and copies each event. */
  | { readonly kind: "log"; readonly store: StoreName }
  /** A table of `node:sqlite` with a packed row a batch, in this thread. */
  | { readonly kind: "bare" }
  /** A file of JSON lines. */
  | { readonly kind: "lines" }

export interface Arguments {
  readonly way: Way
  readonly directory: string
  readonly batches: number
  readonly uncounted: number
  readonly size: number
}

export interface Appended {
  readonly ms: number
  readonly cpu_ms: number
  readonly events: number
  /** Of JSON, without line feeds. */
  readonly json_bytes: number
  /** What the file has grown by; absent of a server. */
  readonly file_bytes?: number
  readonly written: string
  readonly read: string
}

type Batch = ReadonlyArray<SessionEvent.SessionEvent>

interface Appender {
  readonly append: (batch: Batch) => Promise<unknown>
  readonly read: () => Promise<string>
  /** Ends it; answers the size of what it leaves. */
  readonly close: () => Promise<number | undefined>
}

const ofStore = async (kind: "store" | "log", name: StoreName): Promise<Appender> => {
  let close: () => void = () => {}
  const isOver = new Promise<void>((resolve) => close = resolve)
  let tell: (appender: Omit<Appender, "close">) => void = () => {}
  const made = new Promise<Omit<Appender, "close">>((resolve) => tell = resolve)
  const living = Effect.runPromise(
    Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      const id = Logs.sessionId(0)
      yield* store.create(Logs.headerOf(0))
      const append = kind === "store"
        ? yield* Effect.map(store.open(id, "the measurement"), (writer) => (batch: Batch) => writer.append(batch, { sync: true }))
        : yield* Effect.map(SessionLog.open(store, id, "the measurement"), (log) => (batch: Batch) => log.appendAll(batch.map(bodyOf)))
      const sum = digest()
      tell({
        append: (batch) => Effect.runPromise(append(batch)),
        read: () =>
          Effect.runPromise(Effect.map(
            // The log gives events their time.
            Stream.runForEachArray(store.read(id, -1), (events) => Effect.sync(() => sum.add(kind === "log" ? events.map(timeless) : events))),
            sum.end
          ))
      })
      yield* Effect.promise(() => isOver)
    }).pipe(Effect.scoped, Effect.provide(layerOf(name)))
  )
  const appender = await Promise.race([made, living.then(() => Promise.reject(new Error("the store ended")))])
  return {
    ...appender,
    close: async () => {
      close()
      await living
      return name.kind === "sqlite" ? fs.statSync(path.join(name.directory, "sessions.sqlite")).size : undefined
    }
  }
}

const bodyOf = ({ seq: _, time: __, ...body }: SessionEvent.SessionEvent) => body as SessionEvent.Body

const timeless = ({ time: _, ...event }: SessionEvent.SessionEvent) => event

const bare = (directory: string): Appender => {
  const file = path.join(directory, "bare.sqlite")
  const db = new DatabaseSync(file)
  db.exec("pragma journal_mode=wal; pragma synchronous=full; create table batches (first integer primary key, bytes blob not null)")
  const insert = db.prepare("insert into batches (first, bytes) values (?, ?)")
  return {
    append: async (batch) => insert.run(batch[0]?.seq ?? 0, zlib.zstdCompressSync(batch.map((event) => JSON.stringify(event)).join("\n"))),
    read: async () => {
      const sum = digest()
      for (const { bytes } of db.prepare("select bytes from batches order by first").iterate()) {
        sum.add(zlib.zstdDecompressSync(bytes as Uint8Array).toString().split("\n").map((line) => JSON.parse(line)))
      }
      return sum.end()
    },
    close: async () => {
      db.close()
      return fs.statSync(file).size
    }
  }
}

const lines = (directory: string): Appender => {
  const file = path.join(directory, "lines.jsonl")
  const descriptor = fs.openSync(file, "a")
  return {
    append: async (batch) => {
      fs.writeSync(descriptor, batch.map((event) => `${JSON.stringify(event)}\n`).join(""))
      fs.fdatasyncSync(descriptor)
    },
    read: async () => {
      const sum = digest()
      sum.add(fs.readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line)))
      return sum.end()
    },
    close: async () => {
      fs.closeSync(descriptor)
      return fs.statSync(file).size
    }
  }
}

await answer(async ({ batches, directory, size, uncounted, way }: Arguments): Promise<Appended> => {
  const all = Array.from({ length: uncounted + batches }, (_, index) => Logs.events(index * size, size))
  const appender = way.kind === "bare" ? bare(directory) : way.kind === "lines" ? lines(directory) : await ofStore(way.kind, way.store)
  for (const batch of all.slice(0, uncounted)) await appender.append(batch)
  const spent = await timed(async () => {
    for (const batch of all.slice(uncounted)) await appender.append(batch)
  })
  const read = await appender.read()
  const bytes = await appender.close()
  const written = digest()
  for (const batch of all) written.add(way.kind === "log" ? batch.map(timeless) : batch)
  return {
    ...spent,
    events: batches * size,
    json_bytes: all.flat().reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0) / all.length * batches,
    ...(bytes === undefined ? {} : { file_bytes: bytes / all.length * batches }),
    written: written.end(),
    read
  }
})
