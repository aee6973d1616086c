/**
 * Holds a session, and does what its input says, a word a line: `append`, which
 * writes one turn, and `discard ID`. Answers each with `ok` or a failure's code.
 */
import { Scalars } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as readline from "node:readline"
import { layerOf, type StoreName } from "./stores.ts"

export interface Arguments {
  readonly store: StoreName
  readonly session: string
  readonly name: string
}

const say = (line: string) => fs.writeSync(1, `${line}\n`)

export const hold = ({ name, session, store: where }: Arguments) =>
  Effect.gen(function*() {
    const store = yield* SessionStore.SessionStore
    const id = Scalars.SessionId.make(session)
    const writer = yield* store.open(id, name)
    let seq = yield* Stream.runCount(store.read(id, -1))
    let turn = yield* Stream.runCount(Stream.filter(store.read(id, -1), ({ type }) => type === "turn/start"))
    say("open")
    const append = Effect.suspend(() => {
      const number = turn + 1
      return Effect.tap(
        writer.append([
          { seq, time: 1, type: "turn/start", data: { turn: number, trigger: { kind: "message", source: name } } },
          { seq: seq + 1, time: 1, type: "turn/end", data: { turn: number, verdict: { type: "completed" } } }
        ], { sync: true }),
        () =>
          Effect.sync(() => {
            seq += 2
            turn += 1
          })
      )
    })
    const lines = readline.createInterface({ input: process.stdin })
    yield* Stream.runForEach(Stream.orDie(Stream.fromAsyncIterable(lines, (cause) => cause)), (line) =>
      Effect.flatMap(
        Effect.result(line === "append" ? append : writer.discard([line.slice("discard ".length)], "removed", name)),
        (result) => Effect.sync(() => say(result._tag === "Success" ? "ok" : `${result.failure.failure.code}: ${result.failure.failure.message}`))
      ))
  }).pipe(
    Effect.scoped,
    Effect.provide(layerOf(where)),
    Effect.catch(({ failure }) => Effect.sync(() => say(`${failure.code}: ${failure.message}`)))
  )
