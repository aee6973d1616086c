import { assert, describe, it } from "@effect/vitest"
import { Failure, type Verdict } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { type Cancel, SessionDriver, SessionStore } from "../src/index.ts"
import * as Scene from "./support/DriverScene.ts"

const { words } = Scene
const completed: Verdict.Verdict = { type: "completed" }
const user: Cancel.Request = { cause: "user", mode: "graceful" }
const followup = (text: string): SessionStore.Message => ({ kind: "followup", text, source: "user" })
const steer = (text: string): SessionStore.Message => ({ kind: "steer", text, source: "user" })
const inject = (text: string): SessionStore.Message => ({ kind: "inject", text, source: "plugin:x" })
const discard = { keepInbox: false }

/** Runs each turn at once, and remembers its prompts. */
const recorder = () => {
  const prompts: Array<ReadonlyArray<string>> = []
  const execute: SessionDriver.Execute = ({ messages }) =>
    Effect.sync(() => {
      prompts.push(messages.map(({ text }) => text))
      return completed
    })
  return { prompts, execute }
}

/** A turn that says when it runs and ends when it is told to, or is asked to end. */
const held = Effect.gen(function*() {
  const running = yield* Deferred.make<void>()
  const release = yield* Deferred.make<Verdict.Verdict>()
  const execute: SessionDriver.Execute = ({ cancel }) =>
    Effect.andThen(
      Deferred.succeed(running, undefined),
      Effect.raceFirst(
        Deferred.await(release),
        Effect.map(cancel.graceful, (request): Verdict.Verdict => ({ type: "aborted", ...request }))
      )
    )
  return { running: Deferred.await(running), release: (verdict: Verdict.Verdict = completed) => Deferred.succeed(release, verdict), execute }
})

/** Executes the first turn by one, and later turns by another. */
const inTurn = (first: SessionDriver.Execute, others: SessionDriver.Execute): SessionDriver.Execute => {
  let count = 0
  return (turn) => count++ === 0 ? first(turn) : others(turn)
}

const test = (
  name: string,
  body: (scene: Scene.Scene, drive: (execute: SessionDriver.Execute, more?: Partial<SessionDriver.Options>) => Effect.Effect<SessionDriver.SessionDriver, SessionStore.SessionStoreError, Scope.Scope>) => Effect.Effect<unknown, unknown, Scope.Scope>
) =>
  it.effect(name, () =>
    Effect.gen(function*() {
      const scene = Scene.make()
      yield* Effect.scoped(body(scene, (execute, more) => SessionDriver.make({ ...scene.options, execute: scene.watched(execute), wakeAtStart: true, ...more })))
      assert.deepStrictEqual(Scene.faults(scene, true), [])
      // What a turn cannot tell goes to the program's own log, which is not looked at here.
    }).pipe(Effect.provideService(References.MinimumLogLevel, "None")))

describe("a turn", () => {
  test("opens before its prompt is claimed, and the prompt stands before anything leaves", (scene, drive) =>
    Effect.gen(function*() {
      const atExecution: Array<string> = []
      const driver = yield* drive(({ append }) =>
        Effect.gen(function*() {
          atExecution.push(...words(scene.events))
          yield* append({ type: "assistant/message", data: { text: "hi" }, surface_op: "append" })
          return completed
        })
      )
      const { receipt } = yield* driver.send(followup("hello"))
      yield* driver.whenIdle
      assert.deepStrictEqual(atExecution, ["turn/start 1 message", `claimed ${receipt.id}`, "step/start", "user/message hello"])
      assert.deepStrictEqual(words(scene.events), [...atExecution, "assistant/message", "step/end", "turn/end 1 completed"])
    }))

  test("takes all that waits for the next step, then one prompt", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      for (const message of [followup("a"), inject("i"), followup("b"), steer("s")]) yield* scene.receiveElsewhere(message)
      const driver = yield* drive(execute)
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["i", "s", "a"], ["b"]])
      assert.deepStrictEqual(words(scene.events).filter((word) => word.includes("message ")), [
        "context/message i",
        "steering/message s",
        "user/message a",
        "user/message b"
      ])
    }))

  test("that breaks ends with an error, and the driver lives on", (scene, drive) =>
    Effect.gen(function*() {
      const broken = yield* drive(inTurn(() => Effect.die(new Error("boom")), () => Effect.succeed(completed)))
      yield* broken.send(followup("a"))
      yield* broken.whenIdle
      yield* broken.send(followup("b"))
      yield* broken.whenIdle
      assert.deepStrictEqual(words(scene.events).filter((word) => word.startsWith("turn/end") || word.startsWith("error")), [
        "error INTERNAL",
        "turn/end 1 error INTERNAL",
        "turn/end 2 completed"
      ])
    }))

  for (const verdict of [
    { type: "error", error: Failure.make("SERVER", "it broke") },
    { type: "aborted", cause: "hook", mode: "graceful" }
  ] as const) {
    test(`that ends as ${verdict.type} parks what waits until somebody wakes the driver again`, (scene, drive) =>
      Effect.gen(function*() {
        const turn = yield* held
        const { execute, prompts } = recorder()
        const driver = yield* drive(inTurn(turn.execute, execute))
        yield* driver.send(followup("a"))
        yield* turn.running
        yield* driver.send(followup("b"))
        yield* turn.release(verdict)
        yield* driver.whenIdle
        assert.deepStrictEqual([words(scene.events).filter((word) => word.startsWith("turn/start")).length, prompts], [1, []])
        yield* driver.wake
        yield* driver.whenIdle
        assert.deepStrictEqual(prompts, [["b"]])
      }))
  }

  test("takes what waits for the next step when it asks for it", (scene, drive) =>
    Effect.gen(function*() {
      const waiting = yield* Deferred.make<void>()
      const steered = yield* Deferred.make<void>()
      const claimed: Array<string> = []
      const driver = yield* drive(({ claimNextStep }) =>
        Effect.gen(function*() {
          yield* Deferred.succeed(waiting, undefined)
          yield* Deferred.await(steered)
          claimed.push(...(yield* claimNextStep).map(({ text }) => text))
          return completed
        })
      )
      yield* driver.send(followup("a"))
      yield* Deferred.await(waiting)
      yield* driver.send(steer("s"))
      yield* driver.send(followup("b"))
      yield* driver.send(inject("i"))
      yield* Deferred.succeed(steered, undefined)
      yield* driver.whenIdle
      assert.deepStrictEqual(claimed, ["s", "i"])
      assert.strictEqual(words(scene.events).filter((word) => word.startsWith("turn/start")).length, 2)
    }))
})

describe("a blocked turn", () => {
  test("parks what waits until somebody wakes the driver again, and its own prompt is spent", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const gate = (messages: ReadonlyArray<SessionStore.Received["receipt"]>): Effect.Effect<SessionDriver.Decision> =>
        Effect.succeed(messages.some(({ text }) => text === "bad") ? { _tag: "Reject", by: "policy" } : { _tag: "Enter", messages })
      for (const message of [followup("bad"), followup("second")]) yield* scene.receiveElsewhere(message)
      const driver = yield* drive(execute, { gate })
      yield* driver.whenIdle
      yield* driver.send(inject("context"))
      assert.deepStrictEqual(words(scene.events), ["turn/start 1 message", "claimed r1", "turn/end 1 blocked"])
      yield* driver.send(followup("third"))
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["context", "second"], ["third"]])
    }))

  test("whose policy fails ends with that error, and parks the rest", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const policy = new SessionStore.SessionStoreError({ failure: Failure.make("SERVER", "the policy is away") })
      for (const message of [followup("a"), followup("b")]) yield* scene.receiveElsewhere(message)
      const driver = yield* drive(execute, { gate: () => Effect.fail(policy) })
      yield* driver.whenIdle
      assert.deepStrictEqual([words(scene.events).at(-1), prompts], ["turn/end 1 error SERVER", []])
    }))

  test("whose policy closes the session and then fails ends as closed, and its prompt is spent", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const scope = yield* Scope.make()
      const closing = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const gate = () =>
        Effect.gen(function*() {
          yield* Effect.forkDetach(Effect.andThen(Scope.close(scope, Exit.void), Deferred.succeed(closed, undefined)), { startImmediately: true })
          yield* Deferred.await(closing)
          return yield* new SessionStore.SessionStoreError({ failure: Failure.make("SERVER", "the policy broke") })
        })
      yield* scene.receiveElsewhere(followup("a"))
      yield* Effect.forkDetach(Effect.andThen(Effect.yieldNow, Deferred.succeed(closing, undefined)))
      yield* Scope.provide(drive(execute, { gate }), scope)
      yield* Deferred.await(closed)
      // What broke is told where the log does not say it.
      assert.deepStrictEqual([words(scene.events).at(-1), prompts, scene.troubles], ["turn/end 1 aborted disposed hard", [], ["SERVER"]])
    }))
})

describe("a policy", () => {
  const gated = (change: (messages: ReadonlyArray<SessionStore.Received["receipt"]>) => ReadonlyArray<SessionStore.Received["receipt"]>) => ({
    gate: (messages: ReadonlyArray<SessionStore.Received["receipt"]>): Effect.Effect<SessionDriver.Decision> =>
      Effect.succeed({ _tag: "Enter", messages: change(messages) })
  })

  test("may say the batch in other words and another order, and it is put back by no recovery once it ran", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      for (const message of [inject("i"), followup("a")]) yield* scene.receiveElsewhere(message)
      const driver = yield* drive(execute, gated((messages) => messages.map((message) => ({ ...message, text: message.text.toUpperCase() })).reverse()))
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["A", "I"]])
    }))

  test("may let nothing in: the turn completes without a step, and what waits is parked", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      for (const message of [followup("a"), followup("b")]) yield* scene.receiveElsewhere(message)
      const driver = yield* drive(execute, gated(() => []))
      yield* driver.whenIdle
      assert.deepStrictEqual([words(scene.events), prompts], [["turn/start 1 message", "claimed r1", "turn/end 1 completed"], []])
    }))

  for (const [what, change] of [
    ["a part of the batch", (messages) => messages.slice(0, 1)],
    ["a message twice", (messages) => [...messages, ...messages.slice(0, 1)]],
    ["a message that was not claimed", (messages) => messages.map((message) => ({ ...message, id: `other-${message.id}` }))]
  ] as const satisfies ReadonlyArray<readonly [string, Parameters<typeof gated>[0]]>) {
    test(`that lets in ${what} fails the turn before anything leaves: after a crash the rest would run again`, (scene, drive) =>
      Effect.gen(function*() {
        const { execute, prompts } = recorder()
        for (const message of [inject("i"), followup("a")]) yield* scene.receiveElsewhere(message)
        const driver = yield* drive(execute, gated(change))
        yield* driver.whenIdle
        assert.deepStrictEqual([words(scene.events), prompts], [
          ["turn/start 1 message", "claimed r1 r2", "error LOG_RULE", "turn/end 1 error LOG_RULE"],
          []
        ])
      }))
  }
})

describe("an empty turn", () => {
  test("opens for a wake whose message was taken back, and ends without a step", (scene, drive) =>
    Effect.gen(function*() {
      const { execute } = recorder()
      const driver = yield* drive(execute)
      yield* driver.wake
      yield* driver.whenIdle
      assert.deepStrictEqual(words(scene.events), ["turn/start 1 message", "turn/end 1 completed"])
    }))
})

describe("a waking message", () => {
  test("starts an idle driver: from the call on it is running", (_, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const driver = yield* drive(turn.execute)
      assert.deepStrictEqual(yield* driver.phase, { _tag: "Idle", lastTurn: 0 })
      yield* driver.send(followup("a"))
      assert.deepStrictEqual(yield* driver.phase, { _tag: "Running", turn: 1 })
      yield* turn.running
      yield* turn.release()
      yield* driver.whenIdle
      assert.deepStrictEqual(yield* driver.phase, { _tag: "Idle", lastTurn: 1 })
    }))

  test("is taken by the driver that runs, in a turn of its own", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const { execute, prompts } = recorder()
      const driver = yield* drive(inTurn(turn.execute, execute))
      yield* driver.send(followup("a"))
      yield* turn.running
      yield* driver.send(followup("b"))
      yield* driver.send(followup("c"))
      yield* turn.release()
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["b"], ["c"]])
      assert.deepStrictEqual(words(scene.events).filter((word) => word.startsWith("turn/start")).length, 3)
    }))

  test("that comes while a cancelled turn settles is run afterwards", (scene, drive) =>
    Effect.gen(function*() {
      const settle = yield* Deferred.make<void>()
      const running = yield* Deferred.make<void>()
      const { execute, prompts } = recorder()
      const stubborn: SessionDriver.Execute = ({ cancel }) =>
        Effect.gen(function*() {
          yield* Deferred.succeed(running, undefined)
          const request = yield* cancel.graceful
          yield* Deferred.await(settle)
          return { type: "aborted", ...request }
        })
      const driver = yield* drive(inTurn(stubborn, execute))
      yield* driver.send(followup("a"))
      yield* Deferred.await(running)
      yield* driver.send(followup("dropped"))
      yield* driver.cancel(user, discard)
      yield* driver.send(steer("after"))
      yield* Deferred.succeed(settle, undefined)
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["after"]])
      assert.deepStrictEqual(scene.discarded, [{ id: "r2", cause: "cancelled" }])
      // What was to steer the cancelled turn has a turn of its own, and is still what its sender said.
      assert.deepStrictEqual(words(scene.events).filter((word) => word.includes("/message ")), ["user/message a", "steering/message after"])
      assert.strictEqual(scene.received[2]?.kind, "steer")
    }))

  test("that was to steer a turn is not taken by it once the turn was cancelled", (scene, drive) =>
    Effect.gen(function*() {
      const running = yield* Deferred.make<void>()
      const settle = yield* Deferred.make<void>()
      const claimed: Array<string> = []
      const { execute, prompts } = recorder()
      const stubborn: SessionDriver.Execute = ({ cancel, claimNextStep }) =>
        Effect.gen(function*() {
          yield* Deferred.succeed(running, undefined)
          const request = yield* cancel.graceful
          yield* Deferred.await(settle)
          claimed.push(...(yield* claimNextStep).map(({ text }) => text))
          return { type: "aborted", ...request }
        })
      const driver = yield* drive(inTurn(stubborn, execute))
      yield* driver.send(followup("a"))
      yield* Deferred.await(running)
      yield* driver.cancel(user, { keepInbox: true })
      yield* driver.send(steer("s"))
      // Past the driver, by another process.
      yield* scene.receiveElsewhere(steer("t"))
      yield* Deferred.succeed(settle, undefined)
      yield* driver.whenIdle
      assert.deepStrictEqual([claimed, prompts], [[], [["s", "t"]]])
    }))

  test("that is sent again under its key is one prompt with one receipt, also where its turn was cancelled in between", (scene, drive) =>
    Effect.gen(function*() {
      const settle = yield* Deferred.make<void>()
      const running = yield* Deferred.make<void>()
      const { execute, prompts } = recorder()
      const stubborn: SessionDriver.Execute = ({ cancel }) =>
        Effect.gen(function*() {
          yield* Deferred.succeed(running, undefined)
          const request = yield* cancel.graceful
          yield* Deferred.await(settle)
          return { type: "aborted", ...request }
        })
      const driver = yield* drive(inTurn(stubborn, execute))
      yield* driver.send(followup("a"))
      yield* Deferred.await(running)
      const first = yield* driver.send({ ...steer("s"), key: "k" })
      yield* driver.cancel(user, { keepInbox: true })
      const again = yield* driver.send({ ...steer("s"), key: "k" })
      assert.deepStrictEqual(again, { receipt: first.receipt, isNew: false })
      assert.strictEqual((yield* Effect.flip(driver.send({ ...followup("s"), key: "k" }))).failure.code, "KEY_CONFLICT")
      yield* Deferred.succeed(settle, undefined)
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, scene.received.length], [[["s"]], 2])
    }))

  test("that is sent again under its key when it has run opens no turn", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const driver = yield* drive(execute)
      const first = yield* driver.send({ ...followup("a"), key: "k" })
      yield* driver.whenIdle
      const before = words(scene.events)
      assert.deepStrictEqual(yield* driver.send({ ...followup("a"), key: "k" }), { receipt: first.receipt, isNew: false })
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, words(scene.events)], [[["a"]], before])
    }))

  test("that is sent again under its key while it is parked wakes the driver for it", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const message = { ...followup("a"), key: "k" }
      const receipt = yield* scene.receiveElsewhere(message)
      const driver = yield* drive(execute, { wakeAtStart: false })
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [])
      assert.deepStrictEqual(yield* driver.send(message), { receipt, isNew: false })
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["a"]])
    }))

  test("that comes during maintenance waits behind it", (_, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const driver = yield* drive(execute)
      const phases: Array<string> = []
      yield* driver.maintain(Effect.gen(function*() {
        phases.push((yield* driver.phase)._tag)
        yield* driver.send(followup("a"))
        phases.push((yield* driver.phase)._tag, `${prompts.length}`)
      }))
      yield* driver.whenIdle
      assert.deepStrictEqual([phases, prompts], [["Maintenance", "Maintenance", "0"], [["a"]]])
    }))

  test("is refused once the driver is closed, and what waits stays in the inbox", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const scope = yield* Scope.make()
      const driver = yield* Scope.provide(drive(turn.execute), scope)
      yield* driver.send(followup("a"))
      yield* turn.running
      yield* driver.send(followup("b"))
      yield* Scope.close(scope, Exit.void)
      const refused = [driver.send(followup("c")), driver.send(steer("c")), driver.send(inject("c")), driver.injectAsTurn("c", "user"), driver.maintain(Effect.void)]
      for (const asked of refused) assert.strictEqual((yield* Effect.flip(asked)).failure.code, "CANCELLED")
      yield* driver.wake
      yield* driver.background(() => Effect.die(new Error("it runs")))
      for (let n = 0; n < 20; n++) yield* Effect.yieldNow
      assert.deepStrictEqual(words(scene.events).at(-1), "turn/end 1 aborted disposed hard")
      assert.deepStrictEqual([scene.received.length, scene.discarded, yield* driver.phase], [2, [], { _tag: "Closed" }])
    }))

  test("of another process wakes the driver, and a request of another process takes one back", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const { execute, prompts } = recorder()
      const driver = yield* drive(inTurn(turn.execute, execute))
      yield* scene.receiveElsewhere(followup("a"))
      yield* turn.running
      const b = yield* scene.receiveElsewhere(followup("b"))
      yield* scene.receiveElsewhere(followup("c"))
      yield* scene.requestDiscard(b.id)
      for (let n = 0; n < 50; n++) yield* Effect.yieldNow
      yield* turn.release()
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, scene.discarded], [[["c"]], [{ id: b.id, cause: "removed" }]])
    }))
})

describe("a cancellation", () => {
  test("of an idle driver does nothing and arms nothing", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const driver = yield* drive(execute)
      yield* driver.send(inject("parked"))
      yield* driver.cancel(user, discard)
      yield* driver.send(followup("a"))
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, scene.discarded], [[["parked", "a"]], []])
    }))

  test("that keeps the inbox parks it until another wake", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const { execute, prompts } = recorder()
      const driver = yield* drive(inTurn(turn.execute, execute))
      yield* driver.send(followup("a"))
      yield* turn.running
      yield* driver.send(followup("b"))
      yield* driver.cancel(user, { keepInbox: true })
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, scene.discarded], [[], []])
      assert.strictEqual(words(scene.events).at(-1), "turn/end 1 aborted user graceful")
      yield* driver.wake
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["b"]])
    }))

  test("never reaches a turn that is over", (_, drive) =>
    Effect.gen(function*() {
      const tokens: Array<Cancel.CancelToken> = []
      const second = yield* held
      const driver = yield* drive((turn) => {
        tokens.push(turn.cancel)
        return tokens.length === 1 ? Effect.succeed(completed) : second.execute(turn)
      })
      yield* driver.send(followup("a"))
      yield* driver.send(followup("b"))
      yield* second.running
      yield* driver.cancel(user, discard)
      yield* driver.whenIdle
      assert.deepStrictEqual(yield* Effect.forEach(tokens, (token) => token.requests), [[], [user]])
    }))

  test("never reaches the turn after it", (scene, drive) =>
    Effect.gen(function*() {
      const first = yield* held
      const second = yield* held
      const driver = yield* drive(inTurn(first.execute, second.execute))
      yield* driver.send(followup("a"))
      yield* first.running
      yield* driver.cancel(user, discard)
      yield* driver.send(followup("b"))
      yield* second.running
      yield* second.release()
      yield* driver.whenIdle
      assert.deepStrictEqual(words(scene.events).filter((word) => word.startsWith("turn/end")), [
        "turn/end 1 aborted user graceful",
        "turn/end 2 completed"
      ])
    }))
})

describe("an injected text", () => {
  test("waits and wakes nobody", (scene, drive) =>
    Effect.gen(function*() {
      const driver = yield* drive(recorder().execute)
      yield* driver.send(inject("i"))
      yield* driver.whenIdle
      assert.deepStrictEqual([scene.events, scene.received.length], [[], 1])
    }))

  test("as a turn of its own is three events, and parks while a turn runs", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const driver = yield* drive(turn.execute)
      assert.strictEqual(yield* driver.injectAsTurn("note", "plugin:x"), 1)
      assert.deepStrictEqual(words(scene.events), ["turn/start 1 injection", "context/message note", "turn/end 1 completed"])
      yield* driver.send(followup("a"))
      yield* turn.running
      assert.strictEqual(yield* driver.injectAsTurn("later", "plugin:x"), undefined)
      yield* turn.release()
      yield* driver.whenIdle
      assert.deepStrictEqual(scene.received.map(({ kind, text }) => [kind, text]), [["followup", "a"], ["inject", "later"]])
    }))

  test("that cannot be written leaves its turn ended", (scene, drive) =>
    Effect.gen(function*() {
      const driver = yield* drive(recorder().execute)
      scene.fault = (body) => body.type === "context/message"
      // Whoever sent it is told that it is not there.
      assert.strictEqual((yield* Effect.flip(driver.injectAsTurn("note", "plugin:x"))).failure.code, "STORE_FULL")
      assert.deepStrictEqual(words(scene.events), ["turn/start 1 injection", "error STORE_FULL", "turn/end 1 error STORE_FULL"])
    }))
})

describe("background work", () => {
  test("has a turn of its own when none runs, and prompts wait meanwhile", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const background = yield* held
      const driver = yield* drive(inTurn(turn.execute, recorder().execute))
      yield* driver.send(followup("a"))
      yield* turn.running
      yield* driver.background(background.execute)
      yield* driver.send(followup("b"))
      yield* turn.release()
      yield* background.running
      yield* background.release()
      yield* driver.whenIdle
      assert.deepStrictEqual(words(scene.events).filter((word) => word.startsWith("turn/start")), [
        "turn/start 1 message",
        "turn/start 2 background",
        "turn/start 3 message"
      ])
    }))
})

describe("a log that cannot be written", () => {
  test("fails the turn, which has its end before the next one begins", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const driver = yield* drive(execute)
      scene.fault = (body) => body.type === "turn/end"
      yield* driver.send(followup("a"))
      yield* driver.whenIdle
      assert.deepStrictEqual(scene.troubles, ["STORE_FULL"])
      scene.fault = () => false
      yield* driver.send(followup("b"))
      yield* driver.whenIdle
      assert.deepStrictEqual(words(scene.events).filter((word) => word.startsWith("turn/")), [
        "turn/start 1 message",
        "turn/end 1 error STORE_FULL",
        "turn/start 2 message",
        "turn/end 2 completed"
      ])
      assert.deepStrictEqual(prompts, [["a"], ["b"]])
    }))

  test("at its beginning leaves no turn and the prompt in the inbox", (scene, drive) =>
    Effect.gen(function*() {
      const { execute, prompts } = recorder()
      const driver = yield* drive(execute)
      scene.fault = (body) => body.type === "turn/start"
      yield* driver.send(followup("a"))
      yield* driver.whenIdle
      assert.deepStrictEqual([scene.events, scene.troubles], [[], ["STORE_FULL"]])
      scene.fault = () => false
      yield* driver.wake
      yield* driver.whenIdle
      assert.deepStrictEqual(prompts, [["a"]])
    }))
})

describe("an inbox that cannot be looked into for a while", () => {
  test("fails no turn, and what others send meanwhile is run once it can be", (scene, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      const { execute, prompts } = recorder()
      const failing = yield* Deferred.make<void>()
      let hasFailed = false
      const { store } = scene.options
      const inboxChanged: typeof store.inboxChanged = (id, version) =>
        hasFailed ? store.inboxChanged(id, version) : Effect.andThen(Deferred.await(failing), Effect.suspend(() => {
          hasFailed = true
          return Effect.fail(new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FAILED", "somebody locks it") }))
        }))
      const driver = yield* drive(inTurn(turn.execute, execute), { store: { ...store, inboxChanged } })
      yield* driver.send(followup("a"))
      yield* turn.running
      yield* Deferred.succeed(failing, undefined)
      yield* scene.receiveElsewhere(followup("b"))
      yield* turn.release()
      yield* driver.whenIdle
      yield* scene.receiveElsewhere(followup("c"))
      yield* TestClock.adjust("1 second")
      for (let n = 0; n < 20; n++) yield* Effect.yieldNow
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, scene.troubles], [[["b"], ["c"]], []])
      assert.deepStrictEqual(words(scene.events).filter((word) => word.startsWith("turn/end")), [1, 2, 3].map((turn) => `turn/end ${turn} completed`))
    }))
})

describe("a request to discard", () => {
  test("that nobody heard, since nobody had the session, is heeded before anything is run", (scene, drive) =>
    Effect.gen(function*() {
      const { id } = yield* scene.receiveElsewhere(followup("a"))
      yield* scene.receiveElsewhere(followup("b"))
      yield* scene.requestDiscard(id)
      const { execute, prompts } = recorder()
      const driver = yield* drive(execute, { wakeAtStart: true })
      yield* driver.whenIdle
      assert.deepStrictEqual([prompts, scene.discarded], [[["b"]], [{ id, cause: "removed" }]])
    }))
})

describe("whenIdle", () => {
  test("waits for activities that began while it waited", (_, drive) =>
    Effect.gen(function*() {
      const turn = yield* held
      // It settles when it is let, so that the next prompt comes before it is over.
      const settled = yield* Deferred.make<void>()
      const { execute, prompts } = recorder()
      const driver = yield* drive(inTurn((open) => Effect.tap(turn.execute(open), () => Deferred.await(settled)), execute))
      yield* driver.send(followup("a"))
      yield* turn.running
      const waiting = yield* Effect.forkChild(driver.whenIdle, { startImmediately: true })
      yield* driver.cancel(user, discard)
      yield* driver.send(followup("b"))
      yield* Deferred.succeed(settled, undefined)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(prompts, [["b"]])
    }))
})

describe("phases", () => {
  test("are told when they differ", (_, drive) =>
    Effect.gen(function*() {
      const { execute } = recorder()
      const driver = yield* drive(execute)
      const seen: Array<SessionDriver.Phase> = []
      yield* Effect.forkChild(Stream.runForEach(driver.phases, (phase) => Effect.sync(() => void seen.push(phase))), { startImmediately: true })
      yield* driver.send(followup("a"))
      yield* driver.whenIdle
      for (let n = 0; n < 20; n++) yield* Effect.yieldNow
      assert.deepStrictEqual(seen, [{ _tag: "Idle", lastTurn: 0 }, { _tag: "Running", turn: 1 }, { _tag: "Idle", lastTurn: 1 }])
    }))
})
