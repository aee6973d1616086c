/** What holds of prompts and turns whoever drives them: the small loop, and the session driver. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type AgentSession, AgentTurn, Channel, Prompt, Redaction, SessionDriver, SessionLoop, TurnOutput } from "../src/index.ts"
import * as Scene from "./support/DriverScene.ts"
import * as FakeSession from "./support/FakeSession.ts"

interface Driven {
  readonly prompt: (text: string) => Effect.Effect<void>
  /** Completes when all that was prompted is over and told. */
  readonly over: Effect.Effect<void>
}

interface Way {
  readonly name: string
  /** Drives a session; `tell` is called with the answer of each turn when it is over. */
  readonly drive: (session: AgentSession.AgentSession, tell: (text: string) => void) => Effect.Effect<Driven, unknown, Scope.Scope>
}

const loop: Way = {
  name: "the loop",
  drive: (session, tell) =>
    Effect.gen(function*() {
      const prompts = yield* Queue.unbounded<string>()
      let given = 0
      let told = 0
      let waiting: Deferred.Deferred<void> | undefined
      const channel = Channel.make({
        id: "c",
        nextPrompt: Effect.map(Queue.take(prompts), (text) => Channel.ready(Prompt.fromText(text))),
        publishOutput: (output) =>
          Effect.suspend(() => {
            tell(TurnOutput.text(output))
            told++
            return waiting !== undefined && told === given ? Deferred.succeed(waiting, undefined) : Effect.void
          })
      })
      yield* Effect.forkScoped(SessionLoop.runSessionLoop(session, channel))
      return {
        prompt: (text) => Effect.suspend(() => {
          given++
          return Queue.offer(prompts, text)
        }),
        over: Effect.suspend(() => {
          if (told === given) return Effect.void
          waiting = Deferred.makeUnsafe<void>()
          return Deferred.await(waiting)
        })
      }
    })
}

const driver: Way = {
  name: "the driver",
  drive: (session, tell) =>
    Effect.gen(function*() {
      const scene = Scene.make()
      const execute = AgentTurn.make({
        session: Effect.succeed(session),
        redact: Redaction.shapes,
        credentials: { inheritedEnv: {}, env: {}, credentials: undefined },
        grace: "5 seconds"
      })
      const driver = yield* SessionDriver.make({
        ...scene.options,
        wakeAtStart: true,
        execute: (turn) => {
          const told: Array<string> = []
          return execute({
            ...turn,
            append: (body) => {
              if (body.type === "assistant/message") told.push(body.data.text)
              return turn.append(body)
            }
          }).pipe(Effect.tap(() => Effect.sync(() => tell(told.join("")))))
        }
      })
      return {
        prompt: (text) => Effect.asVoid(Effect.orDie(driver.send({ kind: "followup", text, source: "user" }))),
        over: driver.whenIdle
      }
    })
}

/** A session that writes what is done to it into a story, and answers when it has yielded a few times. */
const telling = (story: Array<string>): AgentSession.AgentSession => ({
  ...FakeSession.echo,
  runTurn: (prompt) =>
    Stream.unwrap(Effect.gen(function*() {
      story.push(`run ${prompt.text} in ${FakeSession.echo.sessionId}`)
      for (let n = 0; n < 5; n++) yield* Effect.yieldNow
      return FakeSession.echo.runTurn(prompt)
    })).pipe(Stream.ensuring(Effect.sync(() => void story.push(`end ${prompt.text}`))))
})

describe.each([loop, driver])("$name", ({ drive }) => {
  const test = (name: string, body: (story: Array<string>, driven: Driven) => Effect.Effect<void>) =>
    it.effect(name, () =>
      Effect.scoped(Effect.gen(function*() {
        const story: Array<string> = []
        yield* body(story, yield* drive(telling(story), (text) => story.push(`tell ${text}`)))
      })))

  const turn = (text: string) => [`run ${text} in s-1`, `end ${text}`, `tell echo: ${text}`]

  test("runs prompts in the order given, in one session, each told before the next begins", (story, { over, prompt }) =>
    Effect.gen(function*() {
      for (const text of ["a", "b", "c"]) yield* prompt(text)
      yield* over
      assert.deepStrictEqual(story, ["a", "b", "c"].flatMap(turn))
    }))

  test("loses no prompt that comes after it was idle, or while a turn runs", (story, { over, prompt }) =>
    Effect.gen(function*() {
      yield* prompt("a")
      yield* over
      for (let n = 0; n < 10; n++) yield* Effect.yieldNow
      yield* prompt("b")
      yield* Effect.yieldNow
      yield* prompt("c")
      yield* over
      assert.deepStrictEqual(story, ["a", "b", "c"].flatMap(turn))
    }))

  test("passes a prompt on byte for byte", (story, { over, prompt }) =>
    Effect.gen(function*() {
      const text = " -x \u2028 👋\n\ttrailing  "
      yield* prompt(text)
      yield* over
      assert.deepStrictEqual(story, turn(text))
    }))
})
