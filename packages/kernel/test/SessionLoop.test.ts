import { assert, describe, it } from "@effect/vitest"
import type { TurnEvent } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { AgentSession, Channel, ChannelError, Prompt, SessionDecorator, SessionLoop, TurnError, TurnOutput } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"

type Answer = Effect.Effect<Channel.NextPrompt, ChannelError.ChannelError>

const ready = (text: string): Answer => Effect.succeed(Channel.ready(Prompt.fromText(text)))
const idle: Answer = Effect.succeed(Channel.idle)
const closed: Answer = Effect.succeed(Channel.closed)

/** A channel that gives the answers in order, closed after the last, and writes all that is done to it into `story`. */
const scripted = (answers: ReadonlyArray<Answer>, story: Array<string>, more: Partial<Channel.Channel> = {}) => {
  const left = [...answers]
  return Channel.make({
    id: "c",
    nextPrompt: Effect.suspend(() => {
      story.push("next")
      return left.shift() ?? closed
    }),
    publishOutput: (output) => Effect.sync(() => void story.push(`publish ${TurnOutput.text(output)}`)),
    ...more
  })
}

const telling = (story: Array<string>, session: AgentSession.AgentSession = FakeSession.echo): AgentSession.AgentSession => ({
  ...session,
  runTurn: (prompt) =>
    Stream.suspend(() => {
      story.push(`run ${prompt.text} in ${session.sessionId}`)
      return session.runTurn(prompt)
    })
})

describe("runSessionLoop", () => {
  it.effect("runs a prompt, publishes its output, and stops with success where the channel is closed", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      yield* SessionLoop.runSessionLoop(telling(story), scripted([ready("hello")], story))
      assert.deepStrictEqual(story, ["next", "run hello in s-1", "publish echo: hello", "next"])
    }))

  it.effect("sees two prompts in order in the same session and publishes both answers", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const session = telling(story)
      yield* SessionLoop.runSessionLoop(session, scripted([ready("hello"), ready("world")], story))
      assert.deepStrictEqual(story, [
        "next",
        "run hello in s-1",
        "publish echo: hello",
        "next",
        "run world in s-1",
        "publish echo: world",
        "next"
      ])
      assert.strictEqual(session.sessionId, FakeSession.sessionId)
    }))

  it.effect("asks for the next prompt only when turn and publication before it are over", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const published = yield* Deferred.make<void>()
      const session = FakeSession.make((text) =>
        Stream.unwrap(Effect.as(Deferred.await(gate), Stream.make(FakeSession.end(text)))))
      const channel = scripted([ready("one"), ready("two")], story, {
        publishOutput: (output) => {
          story.push(`publish ${output.text}`)
          return Deferred.await(published)
        }
      })
      const fiber = yield* Effect.forkChild(SessionLoop.runSessionLoop(session, channel), { startImmediately: true })
      assert.deepStrictEqual(story, ["next"])
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.yieldNow
      assert.deepStrictEqual(story, ["next", "publish one"])
      yield* Deferred.succeed(published, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(story, ["next", "publish one", "next", "publish two", "next"])
    }))

  it.effect("ends at once where the channel is closed from the beginning", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      yield* SessionLoop.runSessionLoop(telling(story), scripted([], story))
      assert.deepStrictEqual(story, ["next"])
    }))

  it.effect("waits 5 ms after an idle answer, takes it for no end, and loses no later work", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const fiber = yield* Effect.forkChild(
        SessionLoop.runSessionLoop(telling(story), scripted([idle, idle, ready("late"), idle], story)),
        { startImmediately: true }
      )
      assert.deepStrictEqual(story, ["next"])
      yield* TestClock.adjust(4)
      assert.deepStrictEqual(story, ["next"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(story, ["next", "next"])
      yield* TestClock.adjust(5)
      assert.deepStrictEqual(story, ["next", "next", "next", "run late in s-1", "publish echo: late", "next"])
      yield* TestClock.adjust(5)
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.void)
      assert.strictEqual(story.at(-1), "next")
    }))

  it.effect("stays idle for ever without spinning: one question in 5 ms", () =>
    Effect.gen(function*() {
      let asked = 0
      const channel = Channel.make({
        id: "idle",
        nextPrompt: Effect.sync(() => {
          asked++
          return Channel.idle
        })
      })
      const fiber = yield* Effect.forkChild(SessionLoop.runSessionLoop(FakeSession.echo, channel), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(asked, 201)
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("asks an idle channel again when it wakes, without a clock", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const wake = yield* Deferred.make<void>()
      const channel = scripted([idle, ready("woken")], story, { wake: Deferred.await(wake) })
      const fiber = yield* Effect.forkChild(SessionLoop.runSessionLoop(telling(story), channel), { startImmediately: true })
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(story, ["next"])
      yield* Deferred.succeed(wake, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(story, ["next", "next", "run woken in s-1", "publish echo: woken", "next"])
    }))

  it.effect("does not spin where a wake completes although there is nothing to do", () =>
    Effect.gen(function*() {
      let asked = 0
      const channel = Channel.make({
        id: "restless",
        nextPrompt: Effect.sync(() => {
          asked++
          return Channel.idle
        }),
        wake: Effect.void
      })
      const fiber = yield* Effect.forkChild(SessionLoop.runSessionLoop(FakeSession.echo, channel), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(asked, 202)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("fails with a turn's error unchanged, publishes nothing and asks for nothing more", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const broken = TurnError.io("the pipe broke")
      const session = telling(story, FakeSession.make(() => Stream.fail(broken)))
      const error = yield* Effect.flip(SessionLoop.runSessionLoop(session, scripted([ready("a"), ready("b")], story)))
      assert.strictEqual(error, broken)
      assert.deepStrictEqual(story, ["next", "run a in s-1"])
    }))

  it.effect("fails with a publication's error unchanged and asks for nothing more", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const broken = ChannelError.publish("the group is gone")
      const channel = scripted([ready("a"), ready("b")], story, { publishOutput: () => Effect.fail(broken) })
      const error = yield* Effect.flip(SessionLoop.runSessionLoop(telling(story), channel))
      assert.strictEqual(error, broken)
      assert.deepStrictEqual(story, ["next", "run a in s-1"])
    }))

  it.effect("fails with a receiving error unchanged and runs nothing", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const broken = ChannelError.recv("the socket is closed")
      const error = yield* Effect.flip(SessionLoop.runSessionLoop(telling(story), scripted([Effect.fail(broken)], story)))
      assert.strictEqual(error, broken)
      assert.deepStrictEqual(story, ["next"])
    }))

  it.effect("fails where an event cannot be published, and the turn is over by then", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const broken = ChannelError.io("the screen went away")
      const session = FakeSession.make((text) =>
        Stream.make(FakeSession.chunk("x"), FakeSession.end(text)).pipe(
          Stream.ensuring(Effect.sync(() => void story.push("turn over")))
        ))
      const channel = scripted([ready("a")], story, { publishEvent: () => Effect.fail(broken) })
      const error = yield* Effect.flip(SessionLoop.runSessionLoop(session, channel))
      assert.strictEqual(error, broken)
      assert.deepStrictEqual(story, ["next", "turn over"])
    }))

  it.effect("shows events while the turn runs, before its output", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const channel = scripted([ready("a")], story, {
        publishEvent: (event) => Effect.sync(() => void story.push(event.type))
      })
      yield* SessionLoop.runSessionLoop(FakeSession.echo, channel)
      assert.deepStrictEqual(story, ["next", "assistant/message", "harness/end", "publish echo: a", "next"])
    }))

  it.effect("drives a channel that publishes nothing by default", () =>
    Effect.gen(function*() {
      const answers = [yield* ready("a"), Channel.closed]
      const channel = Channel.make({ id: "mute", nextPrompt: Effect.sync(() => answers.shift() ?? Channel.closed) })
      assert.deepStrictEqual(yield* Effect.exit(SessionLoop.runSessionLoop(FakeSession.echo, channel)), Exit.void)
      assert.isUndefined(channel.publishEvent)
      assert.isUndefined(channel.wake)
    }))

  it.effect("drives instances of classes that are known only by their interfaces", () =>
    Effect.gen(function*() {
      class Counting implements Channel.Channel {
        readonly id = Channel.ChannelId.make("counting")
        readonly #story: Array<string>
        #left = 2
        constructor(story: Array<string>) {
          this.#story = story
        }
        get nextPrompt() {
          return Effect.sync(() => this.#left-- > 0 ? Channel.ready(Prompt.fromText(`n${this.#left}`)) : Channel.closed)
        }
        publishOutput(output: TurnOutput.TurnOutput) {
          return Effect.sync(() => void this.#story.push(output.text))
        }
        publishEvent(event: TurnEvent.TurnEvent) {
          return Effect.sync(() => void this.#story.push(event.type))
        }
      }
      class Loud implements AgentSession.AgentSession {
        readonly sessionId = FakeSession.sessionId
        readonly #suffix = "!"
        runTurn(prompt: Prompt.Prompt) {
          return Stream.make(FakeSession.end(`${prompt.text}${this.#suffix}`))
        }
        get interrupt() {
          return Effect.void
        }
      }
      const story: Array<string> = []
      const counting: Channel.Channel = new Counting(story)
      const loud: AgentSession.AgentSession = new Loud()
      yield* SessionLoop.runSessionLoop(loud, counting)
      assert.deepStrictEqual(story, ["harness/end", "n1!", "harness/end", "n0!"])

      const again: Array<string> = []
      const serial = yield* SessionDecorator.serial(SessionDecorator.resilient(loud))
      yield* SessionLoop.runSessionLoop(serial, Channel.make(new Counting(again)))
      assert.deepStrictEqual(again, ["harness/end", "n1!", "harness/end", "n0!"])
    }))

  it.effect("leaves nothing of a turn running when it is interrupted", () =>
    Effect.gen(function*() {
      const story: Array<string> = []
      const session = FakeSession.make(() => Stream.ensuring(Stream.never, Effect.sync(() => void story.push("cut off"))))
      const fiber = yield* Effect.forkChild(
        SessionLoop.runSessionLoop(session, scripted([ready("a")], story)),
        { startImmediately: true }
      )
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(story, ["next", "cut off"])
    }))

  it.effect("has no limit of turns", () =>
    Effect.gen(function*() {
      let left = 5000
      let published = 0
      const channel = Channel.make({
        id: "many",
        nextPrompt: Effect.sync(() => left-- > 0 ? Channel.ready(Prompt.fromText("x")) : Channel.closed),
        publishOutput: () => Effect.sync(() => void published++)
      })
      yield* SessionLoop.runSessionLoop(FakeSession.echo, channel)
      assert.strictEqual(published, 5000)
    }))
})
