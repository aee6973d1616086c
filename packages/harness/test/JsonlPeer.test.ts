import { assert, describe, it } from "@effect/vitest"
import { type Frame, JsonlPeer } from "@turnpike/harness"
import { type Line, ProcessError } from "@turnpike/process"
import { Cause, Deferred, Effect, Fiber, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"

const text = (value: string): Line.Line => ({ _tag: "Text", text: value, byteLength: value.length, terminated: true })
const answers = (frame: Frame.Frame) => typeof frame["re"] === "string" ? frame["re"] : undefined

const make = Effect.gen(function*() {
  const lines = yield* Queue.unbounded<Line.Line, Cause.Done>()
  const written: Array<string> = []
  const peer = yield* JsonlPeer.make({
    write: (line) => Effect.sync(() => void written.push(line)),
    lines: Stream.fromQueue(lines)
  }, answers)
  const received: Array<Frame.Received> = []
  const reader = yield* Effect.forkChild(Stream.runForEach(peer.received, (item) => Effect.sync(() => received.push(item))), {
    startImmediately: true
  })
  const say = (line: string) => Effect.andThen(Queue.offer(lines, text(line)), Effect.repeat(Effect.yieldNow, { times: 50 }))
  return { peer, written, received, reader, say, end: Queue.end(lines) }
})

describe("JsonlPeer", () => {
  it.effect("writes a frame a line", () =>
    Effect.gen(function*() {
      const { peer, written } = yield* make
      yield* peer.send({ a: "x\ny" })
      assert.deepStrictEqual(written, ["{\"a\":\"x\\ny\"}\n"])
    }))

  it.effect("gives an answer to whoever waits for it, and to nobody else", () =>
    Effect.gen(function*() {
      const { peer, received, say } = yield* make
      const one = yield* Effect.forkChild(peer.request("1", { ask: "1" }, "1 minute"), { startImmediately: true })
      const two = yield* Effect.forkChild(peer.request("2", { ask: "2" }, "1 minute"), { startImmediately: true })
      yield* say("{\"re\":\"2\"}{\"n\":1}")
      yield* say("{\"re\":\"1\"}")
      assert.deepStrictEqual([yield* Fiber.join(one), yield* Fiber.join(two)], [{ re: "1" }, { re: "2" }])
      assert.deepStrictEqual(received, [{ _tag: "Frame", frame: { n: 1 } }])
    }))

  it.effect("lets no answer overtake what was said before it", () =>
    Effect.gen(function*() {
      const lines = yield* Queue.unbounded<Line.Line, Cause.Done>()
      const peer = yield* JsonlPeer.make({ write: () => Effect.void, lines: Stream.fromQueue(lines) }, answers)
      const order: Array<string> = []
      const answer = yield* Effect.forkChild(
        Effect.tap(peer.request("1", { ask: "1" }, "1 minute"), () => Effect.sync(() => order.push("answer"))),
        { startImmediately: true }
      )
      yield* Queue.offerAll(lines, [text("{\"n\":1}"), text("{\"n\":2}{\"re\":\"1\"}")])
      yield* Queue.end(lines)
      yield* Stream.runForEach(peer.received, () => Effect.andThen(Effect.yieldNow, Effect.sync(() => order.push("frame"))))
      yield* Fiber.join(answer)
      assert.deepStrictEqual(order, ["frame", "frame", "answer"])
    }))

  it.effect("takes the answer of a program that had gone before it was asked", () =>
    Effect.gen(function*() {
      const lines = yield* Queue.unbounded<Line.Line, Cause.Done>()
      const arrived = yield* Deferred.make<void>()
      const peer = yield* JsonlPeer.make({
        // The write fails, but only once the answer is there.
        write: () => Effect.andThen(Deferred.await(arrived), Effect.fail(ProcessError.fromReason(new ProcessError.InputClosed({ program: "p", pid: 1, why: "it has ended" })))),
        lines: Stream.fromQueue(lines)
      }, answers)
      const answer = yield* Effect.forkChild(peer.request("1", { ask: "1" }, "1 minute"), { startImmediately: true })
      yield* Effect.forkChild(Stream.runDrain(peer.received), { startImmediately: true })
      yield* Queue.offer(lines, text("{\"re\":\"1\"}"))
      yield* Effect.repeat(Effect.yieldNow, { times: 50 })
      yield* Deferred.succeed(arrived, undefined)
      assert.deepStrictEqual(yield* Fiber.join(answer), { re: "1" })
    }))

  it.effect("delivers an answer that nobody waits for, also a second and a late one", () =>
    Effect.gen(function*() {
      const { peer, received, say } = yield* make
      const late = yield* Effect.forkChild(Effect.flip(peer.request("1", { ask: "1" }, "1 second")), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(late), new JsonlPeer.AnswerLate({ requestId: "1" }))
      yield* say("{\"re\":\"1\"}")
      yield* say("{\"re\":\"9\"}")
      assert.deepStrictEqual(received.map((item) => item._tag === "Frame" ? item.frame : item), [{ re: "1" }, { re: "9" }])
    }))

  it.effect("fails all that wait when the output ends, and all that ask later", () =>
    Effect.gen(function*() {
      const { end, peer, reader } = yield* make
      const waiting = yield* Effect.forkChild(Effect.flip(peer.request("1", { ask: "1" }, "1 minute")), { startImmediately: true })
      yield* end
      yield* Fiber.await(reader)
      const closed = new JsonlPeer.PeerClosed({ detail: "its output has ended" })
      assert.deepStrictEqual(yield* Fiber.join(waiting), closed)
      assert.deepStrictEqual(yield* Effect.flip(peer.send({})), closed)
      assert.deepStrictEqual(yield* Effect.flip(peer.request("2", {}, "1 minute")), closed)
    }))

  it.effect("fails a writer whose process does not read any more", () =>
    Effect.gen(function*() {
      const error = ProcessError.fromReason(new ProcessError.InputClosed({ program: "p", pid: 1, why: "it closed it" }))
      const peer = yield* JsonlPeer.make({ write: () => Effect.fail(error), lines: Stream.never }, answers)
      assert.deepStrictEqual(yield* Effect.flip(peer.send({})), new JsonlPeer.PeerClosed({ detail: error.message }))
    }))

  it.effect("speaks in frames that announce their length", () =>
    Effect.gen(function*() {
      const bytes = yield* Queue.unbounded<Uint8Array, Cause.Done>()
      const written: Array<string> = []
      const peer = yield* JsonlPeer.makeContentLength({
        write: (value) => Effect.sync(() => void written.push(value)),
        bytes: Stream.fromQueue(bytes)
      }, answers)
      const received: Array<Frame.Received> = []
      const reader = yield* Effect.forkChild(Stream.runForEach(peer.received, (item) => Effect.sync(() => received.push(item))), {
        startImmediately: true
      })
      const answer = yield* Effect.forkChild(peer.request("1", { ask: "é" }, "1 minute"), { startImmediately: true })
      const encoded = new TextEncoder().encode("Content-Length: 8\r\n\r\n{\"n\": 1}Content-Length: 10\r\n\r\n{\"re\":\"1\"}junk")
      yield* Queue.offerAll(bytes, [encoded.slice(0, 25), encoded.slice(25)])
      yield* Queue.end(bytes)
      assert.deepStrictEqual(yield* Fiber.join(answer), { re: "1" })
      yield* Fiber.join(reader)
      assert.deepStrictEqual(written, ["Content-Length: 12\r\n\r\n{\"ask\":\"é\"}"])
      assert.deepStrictEqual(received, [
        { _tag: "Frame", frame: { n: 1 } },
        { _tag: "Unparsed", bytes: new TextEncoder().encode("junk"), text: "junk", terminated: false }
      ])
    }))
})
