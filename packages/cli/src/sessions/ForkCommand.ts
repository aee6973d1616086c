/**
 * `turnpike sessions fork`: a new session that begins with the first turns of
 * another.
 */
import { type Scalars, SessionHeader } from "@turnpike/contract"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import { type Given, isOn, one } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import { refuse } from "../Refusal.ts"
import * as ForkPoint from "./ForkPoint.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

const command = (given: Given, [asked = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const wanted = one(given, "id")
    const newId = wanted === undefined ? randomUUID() as Scalars.SessionId : yield* Sessions.newId(wanted)
    const { header, id, store } = yield* Sessions.find({ command: "sessions fork", given }, asked)
    const at = one(given, "at")
    const search = ForkPoint.make(id, at === undefined ? undefined : Number(at))
    yield* Stream.runDrain(Stream.takeUntil(store.read(id, -1), (event) => {
      search.add(event)
      return search.isOver()
    }))
    const seed = search.seed()
    if (Result.isFailure(seed)) return yield* refuse("USAGE", seed.failure.message, { remedy: seed.failure.remedy })
    const events = seed.success.length
    yield* store.create({
      type: "session",
      format: SessionHeader.format,
      id: newId,
      created: Math.max(0, Math.round(yield* Clock.currentTimeMillis)),
      harness: header.harness,
      cwd: header.cwd,
      ...(header.title === undefined ? {} : { title: header.title }),
      parent: { id, events }
    }, seed.success)
    const said = `session ${newId} begins with the first ${events} events of ${id}`
    yield* SessionsProgram.afterwards(
      isOn(given, "json") ? SessionsProgram.writeJson({ id: newId, parent: { id, events } }) : SessionsProgram.write(`${newId}\n`),
      said
    )
    if (!isOn(given, "json")) {
      Composition.say(
        `turnpike: ${said}; ${header.harness} is told them by \`turnpike chat --session ${newId} --resume replay\``
      )
    }
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
