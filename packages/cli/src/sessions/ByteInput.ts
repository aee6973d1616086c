/**
 * The bytes of a file or of standard input, as they are asked for.
 */
import { Failure } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import type { Readable } from "node:stream"
import * as InputText from "../InputText.ts"

/** An input that is open. */
export interface ByteInput {
  /** Fails with `FILE_UNREADABLE`. To be run once. */
  readonly chunks: Stream.Stream<Uint8Array, StoreError>
  /** How many bytes there are; `undefined` where that is not known before they are read. */
  readonly size: number | undefined
}

type StoreError = SessionStore.SessionStoreError

const unreadable = (name: string) => (cause: unknown): StoreError =>
  new SessionStore.SessionStoreError({
    failure: Failure.make("FILE_UNREADABLE", `${InputText.shown(name)} cannot be read: ${InputText.reasonOf(cause)}`)
  })

/** The next chunk; `undefined` at the end. Interrupting it loses nothing. */
const next = (stream: Readable, failed: (cause: unknown) => StoreError): Effect.Effect<Uint8Array | undefined, StoreError> =>
  Effect.callback((resume) => {
    const clear = () => stream.off("readable", look).off("end", look).off("error", fail).off("close", look)
    const settle = (outcome: Effect.Effect<Uint8Array | undefined, StoreError>) => {
      clear()
      resume(outcome)
    }
    const fail = (cause: Error) => settle(Effect.fail(failed(cause)))
    const look = () => {
      const chunk = stream.read() as Buffer | null
      if (chunk !== null) settle(Effect.succeed(chunk))
      else if (stream.errored !== null) settle(Effect.fail(failed(stream.errored)))
      else if (stream.readableEnded || stream.destroyed) settle(Effect.succeed(undefined))
    }
    stream.on("readable", look).on("end", look).on("error", fail).on("close", look)
    look()
    return Effect.sync(clear)
  })

interface Opened {
  /** The next chunk; `undefined` at the end. */
  readonly next: Effect.Effect<Uint8Array | undefined, StoreError>
  readonly size: number | undefined
}

const ofFile = (name: string): Effect.Effect<Opened, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const failed = unreadable(name)
    const handle = yield* Effect.tryPromise({ try: () => fs.promises.open(name), catch: failed })
    const stream = yield* Effect.acquireRelease(
      Effect.sync(() => handle.createReadStream()),
      (opened) =>
        Effect.sync(() => {
          // What comes after the end of the reading concerns nobody.
          opened.on("error", () => {})
          opened.destroy()
        })
    )
    const stats = yield* Effect.tryPromise({ try: () => handle.stat(), catch: failed })
    return { next: next(stream, failed), size: stats.isFile() ? stats.size : undefined }
  })

/** How long it is waited before a pipe is looked into again: 5 ms. */
const pollMillis = 5
const pipeBytes = 65_536

/**
 * A named pipe, without a call that waits: opening one waits for somebody who writes,
 * in a thread that Node would wait for when the program is to end.
 */
const ofPipe = (name: string): Effect.Effect<Opened, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const failed = unreadable(name)
    const { O_NONBLOCK, O_RDONLY } = fs.constants
    const handle = yield* Effect.acquireRelease(
      Effect.tryPromise({ try: () => fs.promises.open(name, O_RDONLY | O_NONBLOCK), catch: failed }),
      (opened) => Effect.promise(() => opened.close())
    )
    let hasWriter = false
    const read = async (): Promise<Uint8Array | "end" | "nothing"> => {
      try {
        const buffer = Buffer.allocUnsafe(pipeBytes)
        const { bytesRead } = await handle.read(buffer, 0, pipeBytes)
        // Before somebody writes, it is as empty as behind the last one.
        if (bytesRead === 0) return hasWriter ? "end" : "nothing"
        hasWriter = true
        return buffer.subarray(0, bytesRead)
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== "EAGAIN") throw cause
        hasWriter = true
        return "nothing"
      }
    }
    const look: Effect.Effect<Uint8Array | undefined, StoreError> = Effect.flatMap(
      Effect.tryPromise({ try: read, catch: failed }),
      (found) => found === "nothing" ? Effect.delay(Effect.suspend(() => look), pollMillis) : found === "end" ? Effect.undefined : Effect.succeed(found)
    )
    return { next: look, size: undefined }
  })

const openNamed = (name: string): Effect.Effect<Opened, StoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const failed = unreadable(name)
    const stats = yield* Effect.tryPromise({ try: () => fs.promises.stat(name), catch: failed })
    if (stats.isDirectory()) return yield* failed(Object.assign(new Error("it is a directory"), { code: "EISDIR" }))
    return yield* stats.isFIFO() ? ofPipe(name) : ofFile(name)
  })

/** Opens a file by its name, `-` being standard input, until the scope closes. Fails with `FILE_UNREADABLE`. */
export const open = (name: string): Effect.Effect<ByteInput, StoreError, Scope.Scope> =>
  Effect.map(
    name === InputText.standardInput
      ? Effect.sync((): Opened => ({ next: next(process.stdin, unreadable(name)), size: undefined }))
      : openNamed(name),
    (opened) => ({
      size: opened.size,
      chunks: Stream.unfold(undefined, () => Effect.map(opened.next, (chunk) => chunk === undefined ? undefined : [chunk, undefined] as const))
    })
  )
