/** Homes with sessions in them, as some other process would have written them. */
import { type InboxEntry, Scalars, type SessionEvent, type SessionHeader } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import { Effect, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Log from "../../../kernel/test/support/LogEvents.ts"
import * as Scratch from "./Scratch.ts"

export const id = (name: string): Scalars.SessionId => Scalars.SessionId.make(name)

export const header = (name: string, facts: Partial<SessionHeader.SessionHeader> = {}): SessionHeader.SessionHeader => ({
  type: "session",
  format: 1,
  id: id(name),
  created: 1_790_000_000_000,
  harness: "scripted",
  cwd: "/project",
  ...facts
})

/** The data directory of a home. */
export const dataOf = (home: string): string => path.join(home, "data")

/** The file of its sessions. */
export const fileOf = (home: string): string => path.join(dataOf(home), SqliteSessionStore.fileName)

/** The store of a home, which is closed with the scope. */
export const store = (home: string) =>
  Effect.suspend(() => {
    fs.mkdirSync(dataOf(home), { recursive: true })
    return SqliteSessionStore.make({ directory: dataOf(home) })
  })

export interface Session {
  readonly header: SessionHeader.SessionHeader
  readonly events: ReadonlyArray<SessionEvent.SessionEvent>
  readonly inbox?: ReadonlyArray<InboxEntry.InboxEntry>
}

/** A session of turns that nobody holds. */
export const session = (name: string, bodies: ReadonlyArray<SessionEvent.Body>, facts: Partial<SessionHeader.SessionHeader> = {}): Session => ({
  header: header(name, facts),
  events: Log.log(bodies)
})

/** Puts sessions in and closes the store. */
export const put = (home: string, ...sessions: ReadonlyArray<Session>) =>
  Effect.scoped(Effect.gen(function*() {
    const into: SessionStore.Service = yield* store(home)
    for (const { events, header, inbox = [] } of sessions) yield* into.restore(header, Stream.fromIterable(events), Stream.fromIterable(inbox))
  }))

/** A new home with these sessions. */
export const make = (...sessions: ReadonlyArray<Session>) => Effect.tap(Scratch.directory, (home) => put(home, ...sessions))

/** Everything below a directory, with the content of each file. */
export const snapshot = (directory: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    fs.readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .sort()
      .map((file) => [path.relative(directory, file), fs.readFileSync(file).toString("base64")])
  )
