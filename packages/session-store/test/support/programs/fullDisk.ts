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
import { layerOf, type Where } from "./stores.ts"

export interface Arguments {
  /** The disk, which is empty. */
  readonly directory: string
  /** How much is left free at most, and in which steps. */
  readonly maxFreeKiB: number
  readonly stepKiB: number
  readonly where: Where
}

export interface Stage {
  readonly freeKiB: number
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

const stage = (directory: string, where: Where, freeKiB: number): Effect.Effect<Stage> =>
  Effect.gen(function*() {
    const ballast = path.join(directory, "ballast")
    const own = path.join(directory, "sessions")
    const told = Scenario.nothing()
    fill(ballast, freeKiB)
    const layer = layerOf({ kind: "sqlite", directory: own, where })
    const opened = Effect.gen(function*() {
      const store = yield* SessionStore.SessionStore
      yield* Scenario.live(store, told, { size: 700, turns: 3 })
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
      refused: early ?? told.refused[0],
      refusedTwice: told.refused.length > 1,
      fault: bad?._tag === "Failure" ? String(bad.cause) : undefined
    }
  })

export const fullDisk = ({ directory, maxFreeKiB, stepKiB, where }: Arguments) =>
  Effect.gen(function*() {
    for (let freeKiB = 0; freeKiB <= maxFreeKiB; freeKiB += stepKiB) fs.writeSync(1, `${JSON.stringify(yield* stage(directory, where, freeKiB))}\n`)
  })
