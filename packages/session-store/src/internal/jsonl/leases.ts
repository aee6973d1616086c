/**
 * Who may write a session, and until when.
 *
 * A lease is the session's, named in the log's file that its writer made; how long it
 * runs stands in a file of the process that has it, which renews all its leases with
 * it. It decides when one may take over and never what is written: that is decided
 * by which files there are.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { LogLine } from "@turnpike/kernel"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import * as OwnProcess from "../ownProcess.ts"
import type { StoreError } from "../storeFailure.ts"
import { type FileError, hasCode, makeSmall, readSmall } from "./files.ts"
import { bytesOf } from "./lines.ts"
import type { Root } from "./root.ts"
import type { Owner } from "./segment.ts"

const OwnerFile = Schema.Struct({ process: Schema.String, expires: Schema.Number })
const decode = Schema.decodeUnknownResult(OwnerFile)

export interface Leases {
  /** The name of this store among the owners. */
  readonly owner: string
  /** Lets the leases of this store run from now on, until the scope closes. */
  readonly begin: Effect.Effect<void, FileError>
  /** Notes that this store holds a session, from before anybody else can see it. */
  readonly hold: (claim: string) => void
  /**
   * Lets go of a session. In this process it is free at once; `write` tells others,
   * and is tried again from time to time until it succeeds.
   */
  readonly release: (claim: string, write: Effect.Effect<void, FileError | StoreError>) => Effect.Effect<void>
  /** Whether a lease that nobody has let go runs: not where its time is over, or its process certainly dead. */
  readonly runs: (owner: Owner) => Effect.Effect<boolean, FileError>
}

/** What dead processes left is taken away after this: a day, in milliseconds. */
const forgottenAfter = 86_400_000

export const make = ({ files, layout }: Root, duration: Duration.Duration): Effect.Effect<Leases, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const owner = randomUUID()
    const me = OwnProcess.self()
    const millis = Math.ceil(Duration.toMillis(duration))
    const held = new Set<string>()
    const unwritten = new Map<string, Effect.Effect<void, FileError | StoreError>>()
    const one = yield* Semaphore.make(1)
    let isBegun = false

    const fileOf = (store: string): string => path.join(layout.owners, `${store}.json`)

    const renew = Effect.gen(function*() {
      const draft = `${fileOf(owner)}.tmp`
      const expires = Math.round(yield* Clock.currentTimeMillis) + millis
      yield* Effect.catchIf(files.unlink(draft), hasCode("ENOENT"), () => Effect.void)
      yield* makeSmall(files, draft, bytesOf([{ process: OwnProcess.format(me), expires } satisfies typeof OwnerFile.Type]))
      yield* files.rename(draft, fileOf(owner))
    })

    const readOwner = (file: string): Effect.Effect<typeof OwnerFile.Type | undefined, FileError> =>
      Effect.map(readSmall(files, file), (bytes) =>
        // One that cannot be read is that of a process that the machine took with it.
        bytes === undefined ? undefined : Result.getOrUndefined(Result.flatMap(LogLine.fields(bytes.subarray(0, -1)), decode)))

    const writeReleases = Effect.suspend(() =>
      Effect.forEach([...unwritten], ([claim, write]) => Effect.tap(write, () => Effect.sync(() => unwritten.delete(claim))), { discard: true })
    ).pipe(Effect.catchCause((cause) => unlessInterrupted(cause, "a session could not be let go; it is tried again")))

    const unlessInterrupted = (cause: Cause.Cause<FileError | StoreError>, what: string): Effect.Effect<void> =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.logDebug(what, cause)

    const renewing = Effect.sleep(millis / 3).pipe(
      // The next round tries again. Should it be too late by then, whoever took over has a later file.
      Effect.andThen(Effect.catchCause(renew, (cause) => unlessInterrupted(cause, "the leases could not be renewed"))),
      Effect.andThen(writeReleases),
      Effect.forever
    )

    const isOver = ({ expires, process }: typeof OwnerFile.Type, now: number): boolean =>
      expires + forgottenAfter < now || OwnProcess.isDead(process, me)

    /** What dead processes left: their files, and sessions that were half made or half deleted. */
    const tidy = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      for (const directory of [layout.making, layout.gone]) {
        for (const name of yield* files.list(directory)) {
          const [store = ""] = name.split(".")
          if (store === owner) continue
          const found = yield* readOwner(fileOf(store))
          if (found === undefined || isOver(found, now)) yield* files.remove(path.join(directory, name))
        }
      }
      for (const name of yield* files.list(layout.owners)) {
        if (name.startsWith(`${owner}.`)) continue
        const file = path.join(layout.owners, name)
        const found = yield* readOwner(file)
        // One that is not known yet may be writing down that it lives.
        const isGone = found === undefined ? !name.endsWith(".tmp") : isOver(found, now)
        if (isGone) yield* Effect.catchIf(files.unlink(file), hasCode("ENOENT"), () => Effect.void)
      }
    }).pipe(Effect.catchCause((cause) => unlessInterrupted(cause, "what dead processes left could not be taken away")))

    const end = Effect.suspend(() =>
      isBegun ? Effect.catchCause(files.unlink(fileOf(owner)), (cause) => unlessInterrupted(cause, "the leases run out by themselves")) : Effect.void
    )
    yield* Effect.addFinalizer(() => end)

    return {
      owner,
      begin: Semaphore.withPermits(one, 1)(Effect.suspend(() => {
        if (isBegun) return Effect.void
        return Effect.gen(function*() {
          yield* renew
          isBegun = true
          yield* Effect.forkIn(renewing, scope)
          yield* tidy
        })
      })),
      hold: (claim) => {
        held.add(claim)
      },
      release: (claim, write) =>
        Effect.suspend(() => {
          held.delete(claim)
          unwritten.set(claim, write)
          return writeReleases
        }),
      runs: ({ claim, store }) =>
        Effect.gen(function*() {
          const found = yield* readOwner(fileOf(store))
          if (found === undefined || found.expires <= (yield* Clock.currentTimeMillis)) return false
          return store === owner ? held.has(claim) : !OwnProcess.isDead(found.process, me)
        })
    }
  })
