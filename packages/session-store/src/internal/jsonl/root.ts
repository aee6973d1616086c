/** The directory of a store: whose it is, in which format, and whether it is still there. */
import type { Scalars } from "@turnpike/contract"
import { LogLine } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import { failed, type StoreError, unknown } from "../storeFailure.ts"
import { vanished } from "./fileFailure.ts"
import { type FileError, type Files, hasCode, makeSmall, readSmall } from "./files.ts"
import { type Layout, layoutOf, placeOf } from "./layout.ts"
import { bytesOf, lineFeed } from "./lines.ts"
import type { Log } from "./logFiles.ts"

/** The version of the directory's format that this one writes. */
const format = 1

const Store = Schema.Struct({ type: Schema.Literal("session-store"), format: Schema.Literal(format) })
const decode = Schema.decodeUnknownResult(Store, { onExcessProperty: "error" })

export interface Root {
  readonly files: Files
  readonly layout: Layout
  /** The files of a session, whether there are any or not. */
  readonly logOf: (id: Scalars.SessionId) => Log
  /** Fails where the directory is not the one that was opened. */
  readonly ifThere: Effect.Effect<void, FileError | StoreError>
}

const foreign = (directory: string, what: string): StoreError =>
  failed("STORE_FAILED", `${directory} is no store of sessions: ${what}`, {
    retryable: false,
    remedy: "Name another directory for the sessions, or move this one away. It was not touched.",
    data: { place: directory }
  })

/** Says whose a directory is, unless somebody does at the same time. */
const mark = (files: Files, { directory, store }: Layout): Effect.Effect<void, FileError> => {
  const draft = `${store}.${randomUUID()}.tmp`
  return makeSmall(files, draft, bytesOf([{ type: "session-store", format } satisfies typeof Store.Type])).pipe(
    Effect.andThen(Effect.catchIf(files.link(draft, store), hasCode("EEXIST"), () => Effect.void)),
    Effect.ensuring(Effect.ignore(files.unlink(draft))),
    Effect.andThen(files.syncDirectory(directory))
  )
}

const check = ({ directory, store }: Layout, bytes: Uint8Array): Effect.Effect<void, StoreError> => {
  const parsed = LogLine.fields(bytes.at(-1) === lineFeed ? bytes.subarray(0, -1) : bytes)
  if (Result.isFailure(parsed)) {
    return Effect.fail(failed("STORE_FAILED", `the sessions in ${directory} are damaged: ${store} cannot be read: ${parsed.failure.message}`, {
      retryable: false,
      remedy: "Nothing was changed. Restore them from a copy; the sessions themselves may be whole.",
      data: { place: store }
    }))
  }
  if (parsed.success["type"] !== "session-store") return Effect.fail(foreign(directory, "its store.json is another program's"))
  if (Result.isSuccess(decode(parsed.success))) return Effect.void
  const version = parsed.success["format"]
  return Effect.fail(failed("FORMAT_UNSUPPORTED", `the sessions in ${directory} were written by a later version: its format is ${JSON.stringify(version)}, this one knows ${format}`, {
    remedy: "Update Turnpike, or name another place for its sessions. Nothing was changed.",
    data: { place: directory, ...(typeof version === "number" ? { version } : {}) }
  }))
}

/** Makes a directory with those above it, on disk. */
const makeDirectory = (files: Files, directory: string): Effect.Effect<void, FileError> =>
  Effect.gen(function*() {
    const missing: Array<string> = []
    for (let at = directory; (yield* files.stat(at)) === undefined && path.dirname(at) !== at; at = path.dirname(at)) missing.push(at)
    yield* files.makeDirectory(directory)
    for (const one of missing) yield* files.syncDirectory(path.dirname(one))
  })

/** Opens a directory, or makes one where there is none or an empty one. */
export const open = (files: Files, directory: string): Effect.Effect<Root, FileError | StoreError> =>
  Effect.gen(function*() {
    const layout = layoutOf(directory)
    let bytes = yield* readSmall(files, layout.store)
    if (bytes === undefined) {
      yield* makeDirectory(files, directory)
      const others = (yield* files.list(directory)).filter((name) => !/^store\.json(?:\..*\.tmp)?$/u.test(name))
      if (others.length > 0) return yield* foreign(directory, `it holds other things, such as ${JSON.stringify(others[0])}`)
      yield* mark(files, layout)
      bytes = yield* readSmall(files, layout.store)
      if (bytes === undefined) return yield* vanished(directory)
    }
    yield* check(layout, bytes)
    for (const one of [layout.sessions, layout.making, layout.owners, layout.gone]) {
      if ((yield* files.stat(one)) === undefined) yield* makeDirectory(files, one)
    }
    const own = yield* files.stat(layout.store)
    const ifThere = Effect.flatMap(files.stat(layout.store), (found) =>
      found === undefined || found.identity !== own?.identity ? Effect.fail(vanished(directory)) : Effect.void)
    return {
      files,
      layout,
      logOf: (id) => ({ files, id, place: placeOf(layout, id), ifStored: ifThere, absent: Effect.andThen(ifThere, Effect.fail(unknown(id))) }),
      ifThere
    }
  })
