/** Tries to spawn from a worker thread; posts what came of it. */
import * as Effect from "effect/Effect"
import { parentPort } from "node:worker_threads"
import * as Supervisor from "../../src/Supervisor.ts"

const spawnedBy = (containment: "pid-namespace" | undefined) =>
  Effect.scoped(Effect.gen(function*() {
    const supervisor = yield* Supervisor.make({ reapOrphans: false })
    const child = yield* supervisor.spawn({ program: "true", cwd: "/", ...(containment === undefined ? {} : { containment }) })
    return child.strategy
  }))

parentPort!.postMessage({
  asked: await Effect.runPromise(Effect.match(spawnedBy("pid-namespace"), { onFailure: (error) => error.message, onSuccess: () => "spawned" })),
  byDefault: await Effect.runPromise(spawnedBy(undefined))
})
