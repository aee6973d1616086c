/**
 * Lives a session's life on a small disk of which a ballast leaves so and so much
 * free, from nothing to enough: so it is full at each stage once. Then the ballast
 * goes, and the same store goes on.
 */
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Scenario from "./scenario.ts"
import { type FileStoreName, layerOf } from "./stores.ts"

export interface Arguments {
  /** In a directory which is the disk, and empty. */
  readonly store: FileStoreName
  /** How much is left free, one time after the other, and how long texts are: a disk's page ends at another step, then. */
  readonly stages: ReadonlyArray<Pick<Stage, "freeKiB" | "size">>
}

export interface Stage {
  readonly freeKiB: number
  /** In characters. */
  readonly size: number
  /** The first thing that was refused. */
  readonly refused: Scenario.Told["refused"][number] | undefined
  readonly refusedTwice: boolean
  readonly fault: string | undefined
}

/** Leaves this much free. */
const fill = (file: string, freeKiB: number) => {
  const descriptor = fs.openSync(file, "w")
  const { bavail, bsize } = fs.statfsSync(file)
  const bytes = bavail * bsize - freeKiB * 1024
  fs.writeSync(descriptor, Buffer.alloc(Math.max(0, bytes)))
  fs.closeSync(descriptor)
}

const stage = (store: FileStoreName, { freeKiB, size }: Arguments["stages"][number]): Effect.Effect<Stage> =>
  Effect.gen(function*() {
    const ballast = path.join(store.directory, "ballast")
    const own = path.join(store.directory, "sessions")
    const told = Scenario.nothing()
    fill(ballast, freeKiB)
    const layer = layerOf({ ...store, directory: own })
    const opened = Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      yield* Scenario.live(store, told, { size, turns: 3 })
      // Full as the disk is, what was acknowledged can be read.
      if (told.refused.length > 0) yield* Scenario.check(store, told)
      fs.rmSync(ballast)
      yield* Scenario.live(store, told, { size: 50, turns: 1 })
      yield* Scenario.check(store, told)
    }).pipe(Effect.provide(layer, { local: true }))
    let early: Scenario.Told["refused"][number] | undefined
    const first = yield* Effect.exit(Effect.catch(opened, ({ failure: { code, message, retryable } }) =>
      Effect.sync(() => {
        early = { step: "layer", code, message, retryable }
      })))
    fs.rmSync(ballast, { force: true })
    const second = yield* Effect.exit(
      Effect.flatMap(SessionStore.SessionStore, (store) =>
        Effect.gen(function*() {
          yield* Scenario.check(store, told)
          yield* Scenario.live(store, told, { size: 50, turns: 1 })
          yield* Scenario.check(store, told)
        })).pipe(Effect.provide(layer, { local: true }))
    )
    fs.rmSync(own, { recursive: true, force: true })
    const bad = [first, second].find(({ _tag }) => _tag === "Failure")
    return {
      freeKiB,
      size,
      refused: early ?? told.refused[0],
      refusedTwice: told.refused.length > 1,
      fault: bad?._tag === "Failure" ? String(bad.cause) : undefined
    }
  })

export const fullDisk = ({ stages, store }: Arguments) =>
  Effect.gen(function*() {
    for (const one of stages) fs.writeSync(1, `${JSON.stringify(yield* stage(store, one))}\n`)
  })
