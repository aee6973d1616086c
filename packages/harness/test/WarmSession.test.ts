import { assert, describe, it } from "@effect/vitest"
import { TurnEvent } from "@turnpike/contract"
import { Dialect, WarmSession } from "@turnpike/harness"
import { Harness, HarnessError, Permission, Prompt, TurnError } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import { Deferred, Effect, Exit, Fiber, Option, Queue, Scope, Stream } from "effect"
import * as Toy from "./support/toyDialect.ts"

const supervisor = Supervisor.layer({ containment: "group", reapOrphans: false })

interface Opened extends Toy.Options {
  readonly resume?: Harness.Resume
  readonly permission?: Permission.Decider
}

const open = (options: Opened = {}) =>
  Effect.gen(function*() {
    const { spawn } = yield* Supervisor.Supervisor
    return yield* WarmSession.open({
      sessionId: "ours",
      dialect: Toy.make(options),
      spawn,
      resume: options.resume,
      permission: options.permission ?? Permission.deny,
      redact: Toy.redact
    })
  })

type Action = readonly [string, unknown?, unknown?]
const actions = (...list: ReadonlyArray<Action>): Prompt.Prompt => Prompt.fromText(JSON.stringify(list))

const turn = (session: Harness.HarnessSession, ...list: ReadonlyArray<Action>) =>
  Stream.runCollect(session.runTurn(actions(...list))).pipe(Effect.map((events): ReadonlyArray<TurnEvent.TurnEvent> => [...events]))

const end = (text: string, more: Partial<TurnEvent.TurnEnd["data"]> = {}): TurnEvent.TurnEvent =>
  TurnEvent.make("harness/end", { stop_reason: "completed", text, worked: false, denials: [], background: [], ...more })
const chunk = (text: string): TurnEvent.TurnEvent => TurnEvent.make("assistant/chunk", { kind: "text", text })
const withoutBound = (events: ReadonlyArray<TurnEvent.TurnEvent>) => events.filter((event) => event.type !== "session/bound")
const boundId = (events: ReadonlyArray<TurnEvent.TurnEvent>): string => {
  for (const event of events) if (event.type === "session/bound") return event.data.harness_session_id
  throw new Error("no session/bound among the events")
}
const kinds = (events: ReadonlyArray<TurnEvent.TurnEvent>) => events.map((event) => event.type === "notice" ? `notice ${event.data.kind}` : event.type)
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Lets the events pass and completes with the first that satisfies the predicate. */
const watch = (session: Harness.HarnessSession, predicate: (event: TurnEvent.TurnEvent) => boolean, ...list: ReadonlyArray<Action>) =>
  Effect.gen(function*() {
    const seen: Array<TurnEvent.TurnEvent> = []
    let found: (event: TurnEvent.TurnEvent) => void = () => {}
    const first = new Promise<TurnEvent.TurnEvent>((resolve) => { found = resolve })
    const fiber = yield* Effect.forkChild(Stream.runForEach(session.runTurn(actions(...list)), (event) =>
      Effect.sync(() => {
        seen.push(event)
        if (predicate(event)) found(event)
      })))
    const event = yield* Effect.raceFirst(
      Effect.promise(() => first),
      Effect.flatMap(Fiber.join(fiber), () => Effect.die(new Error(`the turn ended: ${JSON.stringify(seen)}`)))
    )
    return { fiber, seen, event }
  })

const isChunk = (event: TurnEvent.TurnEvent) => event.type === "assistant/chunk"

describe("WarmSession", () => {
  const test = (name: string, effect: Effect.Effect<unknown, unknown, Supervisor.Supervisor | Scope.Scope>) =>
    it.live(name, () => effect.pipe(Effect.scoped, Effect.provide(supervisor), Effect.asVoid), 60_000)

  test("runs one turn after another in one process", Effect.gen(function*() {
    const session = yield* open()
    const first = yield* turn(session, ["pid"])
    const second = yield* turn(session, ["pid"])
    assert.deepStrictEqual(kinds(first), ["session/bound", "assistant/chunk", "harness/end"])
    assert.deepStrictEqual(second, withoutBound(first))
    assert.deepStrictEqual(yield* session.close, Harness.nothingFound)
  }))

  test("keeps two prompts that are given at once apart, in order", Effect.gen(function*() {
    const session = yield* open()
    const both = yield* Effect.all([turn(session, ["say", "a"], ["sleep", 50], ["say", "b"]), turn(session, ["say", "c"])], {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(both.map(withoutBound), [[chunk("a"), chunk("b"), end("ab")], [chunk("c"), end("c")]])
  }))

  test("keeps every object of a line, and a line that is none as a notice with its bytes", Effect.gen(function*() {
    const session = yield* open()
    const bytes = Buffer.concat([
      Buffer.from("{\"text\":\"a\"}{\"text\":\"b\"} {\"text\":\"c\"}\nhello token=abcdefghijkl\n"),
      Buffer.from([0xe4, 0x0a])
    ])
    const events = withoutBound(yield* turn(session, ["raw", bytes.toString("base64")]))
    const unparsed = (message: string, content: Buffer) =>
      TurnEvent.make("notice", { kind: "unparsed_line", message, bytes_base64: content.toString("base64") })
    assert.deepStrictEqual(events, [
      chunk("a"),
      chunk("b"),
      chunk("c"),
      unparsed("a line of 24 bytes is no JSON object", Buffer.from("hello token=[REDACTED]")),
      unparsed("a line of 1 bytes is no JSON object", Buffer.from([0xe4])),
      end("abc")
    ])
  }))

  test("gives what came between two turns to the next one, bounded and counted", Effect.gen(function*() {
    const session = yield* open()
    // The end of the turn is said by hand, so that frames follow it.
    yield* turn(session, ["frame", { end: "completed" }], ["flood", 100], ["wait"])
    const events = yield* Effect.repeat(Effect.sleep(20), { times: 20 }).pipe(Effect.andThen(turn(session, ["say", "x"])))
    assert.deepStrictEqual(kinds(events).filter((kind) => kind === "notice late_frame").length, WarmSession.maxHeld + 1)
    assert.deepStrictEqual(
      events.find((event) => event.type === "notice" && event.data.message.includes("not kept")),
      TurnEvent.make("notice", { kind: "late_frame", message: "36 more records between the turns were not kept" })
    )
    assert.deepStrictEqual(events.slice(-2), [chunk("x"), end("x")])
  }))

  test("does not run ahead of a slow reader, and drops nothing", Effect.gen(function*() {
    const session = yield* open()
    let count = 0
    let sum = 0
    yield* Stream.runForEach(session.runTurn(actions(["flood", 20_000])), (event) =>
      Effect.gen(function*() {
        if (event.type !== "assistant/chunk") return
        if (count === 0) yield* Effect.sleep(300)
        count++
        sum += Number(event.data.text)
      }))
    assert.deepStrictEqual({ count, sum }, { count: 20_000, sum: (19_999 * 20_000) / 2 })
  }))

  test("fails the turn with the exit code and the redacted end of the errors when the process dies", Effect.gen(function*() {
    const session = yield* open()
    const error = yield* Effect.flip(turn(session, ["err", "it broke; api_key=sk-abcdefghijklmnop\n"], ["sleep", 50], ["exit", 7]))
    assert.deepStrictEqual(error.failure, {
      code: "HARNESS_FAILED",
      message: "toy exited with code 7 in the middle of the turn (38 bytes of output): it broke; api_key=[REDACTED]",
      retryable: false,
      remedy: "Read the message; it carries the end of the harness's own output.",
      data: { exit_code: 7, signal: null }
    })
  }))

  test("starts the process again, with resume, after it died", Effect.gen(function*() {
    const launches: Array<Dialect.Launch> = []
    const session = yield* open({ launches })
    const first = yield* turn(session, ["say", "a"])
    yield* Effect.flip(turn(session, ["kill", "SIGKILL"]))
    const third = yield* turn(session, ["say", "b"])
    assert.deepStrictEqual(kinds(third), ["notice restarted", "session/bound", "assistant/chunk", "harness/end"])
    assert.strictEqual(boundId(third), boundId(first))
    assert.deepStrictEqual(launches, [{ _tag: "Begin" }, { _tag: "Resume", harnessSessionId: boundId(first) }])
  }))

  test("starts it again when it died between two turns", Effect.gen(function*() {
    const session = yield* open()
    yield* turn(session, ["frame", { end: "completed" }], ["exit", 0])
    let events: ReadonlyArray<TurnEvent.TurnEvent> = []
    // The prompt may reach a process that is about to exit; then the turn fails and the one after it is the restarted one.
    for (let tries = 0; tries < 5 && !kinds(events).includes("notice restarted"); tries++) {
      events = Option.getOrElse(yield* Effect.option(turn(session, ["say", "b"])), () => [])
    }
    assert.deepStrictEqual(withoutBound(events).slice(-2), [chunk("b"), end("b")])
  }))

  test("gives every prompt to a living process, however often it dies between turns", Effect.gen(function*() {
    const session = yield* open()
    for (let round = 0; round < 15; round++) {
      yield* turn(session, ["say", "x"])
      // It exits as soon as its turn has ended, which the next prompt must survive.
      yield* turn(session, ["frame", { end: "completed" }], ["exit", 0])
      if (round % 3 === 0) yield* Effect.sleep(round * 5)
    }
    yield* turn(session, ["say", "x"])
  }).pipe(Effect.catch((error) =>
    // The prompt may reach a process that has not yet exited: then it is told as that process's death, and nothing else.
    Effect.sync(() => assert.strictEqual(error instanceof TurnError.TurnError ? error.failure.code : error, "HARNESS_FAILED"))
  )))

  test("ends a turn that is interrupted before its process runs again, without sending its prompt", Effect.gen(function*() {
    const session = yield* open()
    yield* turn(session, ["say", "a"])
    yield* Effect.flip(turn(session, ["exit", 1]))
    const fiber = yield* Effect.forkChild(turn(session, ["say", "never"]), { startImmediately: true })
    yield* session.interrupt
    assert.deepStrictEqual(kinds(yield* Fiber.join(fiber)), ["notice restarted", "harness/end"])
    assert.deepStrictEqual(withoutBound(yield* turn(session, ["say", "b"])), [chunk("b"), end("b")])
  }))

  test("loses no interrupt, whenever it comes", Effect.gen(function*() {
    const session = yield* open()
    for (let wait = 0; wait < 30; wait++) {
      const fiber = yield* Effect.forkChild(turn(session, ["wait"]), { startImmediately: true })
      for (let yields = 0; yields < wait; yields++) yield* Effect.yieldNow
      yield* session.interrupt
      const events = yield* Fiber.join(fiber)
      assert.strictEqual(events.at(-1)?.type === "harness/end" ? (events.at(-1) as TurnEvent.TurnEnd).data.stop_reason : "none", "aborted")
    }
  }))

  test("fails a session that is lost on resume, or goes on without history where that was asked for", Effect.gen(function*() {
    const lost = yield* Effect.flip(open({ modes: ["lost"], resume: { harnessSessionId: "old", onLost: "fail" } }))
    assert.deepStrictEqual(lost, HarnessError.sessionLost("toy", "old"))
    const session = yield* open({ modes: ["lost", undefined], resume: { harnessSessionId: "old", onLost: "fresh" } })
    const events = yield* turn(session, ["say", "x"])
    assert.deepStrictEqual(kinds(events), ["notice fresh_session", "session/bound", "assistant/chunk", "harness/end"])
  }))

  test("tells a session that was lost its history with the next prompt, once, and asks for it only then", Effect.gen(function*() {
    let asked = 0
    // The toy's prompts are JSON, and the history stands before the prompt.
    const history = Effect.sync(() => `[["say", "history ${++asked}"],`)
    const session = yield* open({ modes: ["lost", undefined], resume: { harnessSessionId: "old", onLost: "replay", history } })
    assert.strictEqual(asked, 0)
    const events = [...yield* Stream.runCollect(session.runTurn(Prompt.fromText("[\"say\", \"x\"]]")))]
    assert.deepStrictEqual(kinds(events), ["notice replayed", "session/bound", "assistant/chunk", "assistant/chunk", "harness/end"])
    assert.strictEqual(asked, 1)
    assert.deepStrictEqual(withoutBound(yield* turn(session, ["say", "y"])), [chunk("y"), end("y")])
    assert.strictEqual(asked, 1)
  }))

  test("goes on without history where there is none to tell", Effect.gen(function*() {
    for (const resume of [{ harnessSessionId: undefined, onLost: "fresh" }, { harnessSessionId: undefined, onLost: "replay" }] as const) {
      const session = yield* open({ resume })
      assert.deepStrictEqual(kinds(yield* turn(session, ["say", "x"])), ["notice fresh_session", "session/bound", "assistant/chunk", "harness/end"])
    }
  }))

  /** The turns that the harness begins by itself, each whole, as they are read. */
  /** `begun` has something for each turn that has said something, `turns` the events of those that are over. */
  const listening = (session: Harness.HarnessSession) =>
    Effect.gen(function*() {
      const begun = yield* Queue.unbounded<void>()
      const turns = yield* Queue.unbounded<ReadonlyArray<string>>()
      assert.isDefined(session.onOwnTurn)
      yield* session.onOwnTurn((events) => {
        const told: Array<TurnEvent.TurnEvent> = []
        return Stream.runForEach(events, (event) => Effect.suspend(() => told.push(event) === 1 ? Queue.offer(begun, undefined) : Effect.void)).pipe(
          Effect.match({ onFailure: ({ failure }) => [failure.code as string], onSuccess: () => kinds(told) }),
          Effect.flatMap((all) => Queue.offer(turns, all)),
          Effect.asVoid
        )
      })
      return { begun, turns }
    })

  test("tells a turn that the harness begins by itself to whoever listens, with its own ending; a prompt waits for it", Effect.gen(function*() {
    const session = yield* open()
    const { begun, turns } = yield* listening(session)
    yield* turn(session, ["later", 50, [["say", "by"], ["say", "myself"], ["sleep", 100]]])
    const told = yield* Queue.take(turns)
    assert.deepStrictEqual(told, ["assistant/chunk", "assistant/chunk", "harness/end"])
    yield* Queue.take(begun)
    yield* turn(session, ["later", 20, [["say", "slow"], ["sleep", 300], ["say", "er"]]])
    yield* Queue.take(begun)
    const prompted = yield* turn(session, ["say", "prompted"])
    assert.deepStrictEqual(prompted, [chunk("prompted"), end("prompted")])
    assert.deepStrictEqual(yield* Queue.take(turns), ["assistant/chunk", "assistant/chunk", "harness/end"])
  }))

  test("tells turns that the harness begins by itself before the last one is read to its end, in order", Effect.gen(function*() {
    const session = yield* open()
    const { turns } = yield* listening(session)
    const own: Array<ReadonlyArray<string> | string> = []
    const list: ReadonlyArray<Action> = [["later", 20, [["say", "by"], ["say", "myself"]]], ["later", 200, [["say", "again"]]]]
    yield* Stream.runForEach(session.runTurn(actions(...list)), (event) =>
      Effect.gen(function*() {
        if (event.type !== "harness/end") return
        own.push(yield* Queue.take(turns), yield* Queue.take(turns))
      }))
    assert.deepStrictEqual(own, [["assistant/chunk", "assistant/chunk", "harness/end"], ["assistant/chunk", "harness/end"]])
    assert.deepStrictEqual(withoutBound(yield* turn(session, ["say", "x"])), [chunk("x"), end("x")])
  }))

  test("waits with a prompt for every turn that the harness began by itself and somebody reads", Effect.gen(function*() {
    const session = yield* open()
    assert.isDefined(session.onOwnTurn)
    const order: Array<string> = []
    const go = yield* Deferred.make<void>()
    const begun = yield* Queue.unbounded<void>()
    yield* session.onOwnTurn((events) =>
      Stream.runForEach(events, (event) =>
        Effect.gen(function*() {
          if (event.type !== "harness/end") return
          yield* Queue.offer(begun, undefined)
          yield* Deferred.await(go)
          order.push("own")
        })).pipe(Effect.ignore))
    yield* turn(session, ["later", 20, [["say", "one"]]], ["later", 150, [["say", "two"]]])
    yield* Queue.take(begun)
    yield* Queue.take(begun)
    const prompted = yield* Effect.forkChild(Effect.tap(turn(session, ["say", "x"]), () => Effect.sync(() => order.push("prompt"))))
    yield* Effect.sleep(50)
    yield* Deferred.succeed(go, undefined)
    assert.deepStrictEqual(withoutBound(yield* Fiber.join(prompted)), [chunk("x"), end("x")])
    assert.deepStrictEqual(order, ["own", "own", "prompt"])
  }))

  test("makes notices of a turn that the harness begins by itself where nobody listens, or not any more", Effect.gen(function*() {
    const heard = yield* Deferred.make<void>()
    const session = yield* open({ heard: (frame) => frame["chatter"] === 1 && Deferred.doneUnsafe(heard, Effect.void) })
    const scope = yield* Scope.make()
    yield* Scope.provide(listening(session), scope)
    yield* Scope.close(scope, Exit.void)
    yield* turn(session, ["later", 20, [["frame", { chatter: 1 }]]])
    yield* Deferred.await(heard)
    yield* session.backgroundDone
    assert.deepStrictEqual(kinds(yield* turn(session, ["say", "x"])), ["notice late_frame", "assistant/chunk", "harness/end"])
  }))

  test("goes on in a prompt's turn with what the harness began by itself and nobody has begun to read", Effect.gen(function*() {
    const session = yield* open()
    const read = yield* Deferred.make<ReadonlyArray<string>>()
    const begun = yield* Deferred.make<void>()
    const go = yield* Deferred.make<void>()
    assert.isDefined(session.onOwnTurn)
    yield* session.onOwnTurn((events) =>
      Effect.andThen(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)), Effect.matchEffect(Stream.runCollect(events), {
        onFailure: () => Effect.void,
        onSuccess: (all) => Effect.asVoid(Deferred.succeed(read, kinds([...all])))
      })))
    yield* turn(session, ["later", 20, [["say", "unread"]]])
    yield* Deferred.await(begun)
    yield* session.backgroundDone
    const events = yield* turn(session, ["say", "x"])
    assert.deepStrictEqual(events, [TurnEvent.make("assistant/chunk", { kind: "text", text: "unread", origin: "background" }), chunk("x"), end("x")])
    yield* Deferred.succeed(go, undefined)
    assert.deepStrictEqual(yield* Deferred.await(read), ["notice harness_note", "harness/end"])
  }))

  test("cuts a turn of the harness's own off when its reader leaves, or the session is closed", Effect.gen(function*() {
    const session = yield* open()
    assert.isDefined(session.onOwnTurn)
    const left = yield* Deferred.make<void>()
    yield* session.onOwnTurn((events) =>
      Effect.andThen(Effect.ignore(Stream.runDrain(Stream.take(events, 1))), Deferred.succeed(left, undefined)).pipe(Effect.asVoid))
    const first = yield* turn(session, ["pid"], ["later", 20, [["say", "first"], ["hang"]]])
    yield* Deferred.await(left)
    const second = yield* turn(session, ["pid"])
    assert.notDeepEqual(first.at(-1), second.at(-1))
    assert.include(kinds(second), "notice restarted")
    const { begun, turns } = yield* listening(session)
    yield* turn(session, ["later", 20, [["say", "last"], ["hang"]]])
    yield* Queue.take(begun)
    yield* session.close
    assert.deepStrictEqual(yield* Queue.take(turns), ["HARNESS_IO"])
  }))

  test("fails the turn when a restart finds the session lost", Effect.gen(function*() {
    const session = yield* open({ modes: [undefined, "lost"] })
    const id = boundId(yield* turn(session, ["say", "a"]))
    yield* Effect.flip(turn(session, ["exit", 1]))
    const error = yield* Effect.flip(turn(session, ["say", "b"]))
    assert.strictEqual(error.failure.code, "SESSION_LOST")
    assert.include(error.failure.message, id)
  }))

  test("refuses a program that is something else, with what it said", Effect.gen(function*() {
    const error = yield* Effect.flip(open({ modes: ["junk"] }))
    assert.strictEqual(error.failure.code, "HARNESS_NOT_A_HARNESS")
    assert.include(error.failure.message, "exited with code 4 before it was ready")
    assert.include(error.failure.message, "welcome to the wrong program\nusage: toy, token=[REDACTED]")
  }))

  test("refuses a program that does not answer in time, and leaves nothing of it", Effect.gen(function*() {
    const error = yield* Effect.flip(open({ modes: ["silent"], handshakeMs: 500 }))
    assert.strictEqual(error.failure.code, "HARNESS_NOT_A_HARNESS")
    assert.include(error.failure.message, "did not answer in time")
  }))

  test("gives what came before the handshake to the first turn", Effect.gen(function*() {
    const session = yield* open({ modes: ["early"] })
    assert.deepStrictEqual(kinds(yield* turn(session, ["say", "x"])), [
      "notice late_frame",
      "notice unparsed_line",
      "session/bound",
      "assistant/chunk",
      "harness/end"
    ])
  }))

  test("asks a running turn to end itself and lets it", Effect.gen(function*() {
    const session = yield* open()
    const { fiber, seen } = yield* watch(session, isChunk, ["say", "a"], ["wait"])
    yield* session.interrupt
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(withoutBound(seen), [chunk("a"), end("a", { stop_reason: "aborted" })])
    assert.deepStrictEqual(withoutBound(yield* turn(session, ["say", "b"])), [chunk("b"), end("b")])
  }))

  test("sends INT where the program has no way of its own", Effect.gen(function*() {
    const session = yield* open({ ownInterrupt: false })
    const { fiber } = yield* watch(session, isChunk, ["say", "a"], ["hang"])
    yield* session.interrupt
    const error = yield* Effect.flip(Fiber.join(fiber))
    assert.deepStrictEqual(error.failure.data, { exit_code: null, signal: "SIGINT" })
  }))

  test("does nothing when it is interrupted between turns", Effect.gen(function*() {
    const session = yield* open()
    yield* session.interrupt
    assert.deepStrictEqual(withoutBound(yield* turn(session, ["say", "a"])), [chunk("a"), end("a")])
  }))

  test("kills the process and all that the turn began when the turn's reader goes away", Effect.gen(function*() {
    const session = yield* open()
    const first = yield* turn(session, ["pid"])
    const pid = Number((withoutBound(first)[0] as TurnEvent.Of<"assistant/chunk">).data.text)
    const { fiber } = yield* watch(session, isChunk, ["spawn", "sleep 300"], ["sleep", 100], ["say", "started"], ["hang"])
    yield* Fiber.interrupt(fiber)
    assert.isFalse(isAlive(pid))
    const next = yield* turn(session, ["say", "b"])
    assert.deepStrictEqual(kinds(next), ["notice restarted", "session/bound", "assistant/chunk", "harness/end"])
    const report = yield* session.close
    assert.deepStrictEqual(report.killed.map(({ command }) => command.replace(/^.*sleep/, "sleep")), report.killed.map(() => "sleep 300"))
    assert.isAbove(report.killed.length, 0)
    assert.deepStrictEqual(report.survivors, [])
  }))

  test("treats a reader that takes only the beginning like one that was interrupted", Effect.gen(function*() {
    const session = yield* open()
    yield* session.runTurn(actions(["say", "a"], ["say", "b"], ["hang"])).pipe(Stream.take(2), Stream.runDrain)
    assert.deepStrictEqual(kinds(yield* turn(session, ["say", "b"])), ["notice restarted", "session/bound", "assistant/chunk", "harness/end"])
  }))

  test("ends what a turn left behind, and tells", Effect.gen(function*() {
    const session = yield* open()
    const events = yield* turn(session, ["spawn", "sleep 300"], ["sleep", 200])
    assert.deepStrictEqual(kinds(events), ["session/bound", "notice killed_leftovers", "harness/end"])
    const report = yield* session.close
    assert.deepStrictEqual(report.survivors, [])
    assert.isAbove(report.killed.length, 0)
  }))

  test("leaves declared tasks alone, waits for them, and lists those that closing ended", Effect.gen(function*() {
    const session = yield* open()
    const events = yield* turn(session, ["spawn", "sleep 300"], ["tasks", ["t1"]], ["sleep", 100])
    assert.deepStrictEqual(kinds(events), ["session/bound", "harness/end"])
    const waiting = yield* Effect.forkChild(session.backgroundDone)
    yield* turn(session, ["say", "x"])
    assert.isUndefined(waiting.pollUnsafe())
    const report = yield* session.close
    yield* Fiber.join(waiting)
    assert.deepStrictEqual(report.backgroundKilled, [{ id: "t1" }])
  }))

  test("completes backgroundDone when the harness says that its tasks are done", Effect.gen(function*() {
    const session = yield* open()
    yield* session.backgroundDone
    yield* turn(session, ["tasks", ["t1"]])
    const waiting = yield* Effect.forkChild(session.backgroundDone)
    yield* turn(session, ["tasks", []])
    yield* Fiber.join(waiting)
    assert.deepStrictEqual((yield* session.close).backgroundKilled, [])
  }))

  test("puts permission requests to the decider and tells the harness", Effect.gen(function*() {
    const session = yield* open()
    const events = withoutBound(yield* turn(session, ["ask", "q1", "rm"]))
    assert.deepStrictEqual(events, [
      TurnEvent.make("permission/request", { request_id: "q1", tool_name: "rm" }),
      TurnEvent.make("permission/decision", {
        request_id: "q1",
        decision: "deny",
        by: "deny",
        reason: "rm was not allowed and nobody is there to ask"
      }),
      chunk("answer q1 deny"),
      end("answer q1 deny")
    ])
  }))

  test("answers open permission requests with cancelled when the turn is interrupted", Effect.gen(function*() {
    const session = yield* open({ permission: { name: "slow", decide: () => Effect.never } })
    const { fiber, seen } = yield* watch(session, (event) => event.type === "permission/request", ["ask", "q1", "rm"])
    yield* session.interrupt
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(kinds(withoutBound(seen)).slice(0, 2), ["permission/request", "permission/decision"])
    assert.deepStrictEqual(
      seen.find((event) => event.type === "permission/decision"),
      TurnEvent.make("permission/decision", {
        request_id: "q1",
        decision: "cancelled",
        by: "slow",
        reason: "the turn ended before anyone answered"
      })
    )
  }))

  test("counts a decider that breaks as a denial", Effect.gen(function*() {
    const session = yield* open({ permission: { name: "broken", decide: () => Effect.die(new Error("no hands")) } })
    const events = withoutBound(yield* turn(session, ["ask", "q1", "rm"]))
    assert.deepStrictEqual(events.slice(-2), [chunk("answer q1 deny"), end("answer q1 deny")])
  }))

  test("fails a turn that the harness reports as failed, and stays usable", Effect.gen(function*() {
    const session = yield* open()
    const error = yield* Effect.flip(turn(session, ["fail", "the model is down"]))
    assert.strictEqual(error.reason._tag, "Reported")
    assert.deepStrictEqual(kinds(yield* turn(session, ["say", "b"])), ["assistant/chunk", "harness/end"])
  }))

  test("kills the process before it fails a turn that broke a limit", Effect.gen(function*() {
    const session = yield* open()
    const pid = Number((withoutBound(yield* turn(session, ["pid"]))[0] as TurnEvent.Of<"assistant/chunk">).data.text)
    const error = yield* Effect.flip(turn(session, ["frame", { violation: "it ran rm" }], ["hang"]))
    assert.strictEqual(error.failure.code, "POLICY_VIOLATION")
    assert.isFalse(isAlive(pid))
  }))

  test("kills the process and fails the turn where a record that the turn waits for cannot be read", Effect.gen(function*() {
    const session = yield* open()
    const pid = Number((withoutBound(yield* turn(session, ["pid"]))[0] as TurnEvent.Of<"assistant/chunk">).data.text)
    const raw = (text: string): Action => ["raw", Buffer.from(`${text}\n`).toString("base64")]
    const torn = (text: string) => turn(session, raw(text), ["hang"]).pipe(Effect.flip, Effect.map(({ failure }) => failure))
    const bound = 32 * 1024 * 1024
    const ending = `{"end":"completed","all":"${"x".repeat(bound)}"}`

    const oversize = yield* torn(ending)
    assert.deepStrictEqual(oversize, {
      code: "HARNESS_PROTOCOL",
      message: `a record by which toy ends its turn or asks for an answer has ${ending.length} bytes, which is over the bound; its process was stopped, and the session can be continued`,
      retryable: false,
      remedy: "Run again; a notice has the beginning of the record. If it happens again, check the harness's version with `turnpike doctor`."
    })
    assert.isFalse(isAlive(pid))
    assert.include((yield* torn("{\"ask\":\"1\",\"tool\":!!}")).message, "of 21 bytes is no JSON; its process was stopped")

    // What no turn waits for is told, and the turn goes on.
    assert.deepStrictEqual(kinds(yield* turn(session, raw("{\"note\":\"end\",!"), ["say", "b"])), [
      "notice restarted",
      "session/bound",
      "notice unparsed_line",
      "assistant/chunk",
      "harness/end"
    ])
  }))

  test("fails a turn whose process no longer reads", Effect.gen(function*() {
    const session = yield* open()
    yield* turn(session, ["stop-reading"])
    const error = yield* Effect.flip(turn(session, ["say", "b"]))
    assert.include(error.message, "does not read its input")
    assert.strictEqual(error.failure.code, "HARNESS_IO")
  }))

  test("waits for the exit of a program that ends after each turn, and tells its code", Effect.gen(function*() {
    const session = yield* open({ oneTurnPerProcess: true })
    const first = withoutBound(yield* turn(session, ["say", "a"]))
    assert.deepStrictEqual(first, [chunk("a"), end("a", { exit_code: 0 })])
    const second = withoutBound(yield* turn(session, ["frame", { end: "completed" }], ["exit", 3]))
    assert.deepStrictEqual(second, [end("", { exit_code: 3 })])
  }))

  test("fails a running turn when the session is closed under it, and every later one", Effect.gen(function*() {
    const session = yield* open()
    const { fiber } = yield* watch(session, isChunk, ["say", "a"], ["hang"])
    yield* session.close
    assert.include((yield* Effect.flip(Fiber.join(fiber))).message, "closed while the turn ran")
    assert.include((yield* Effect.flip(turn(session, ["say", "b"]))).message, "the session is closed")
  }))

  test("is closed by the scope that opened it", Effect.gen(function*() {
    const scope = yield* Scope.make()
    const session = yield* open().pipe(Effect.provideService(Scope.Scope, scope))
    const pid = Number((withoutBound(yield* turn(session, ["pid"]))[0] as TurnEvent.Of<"assistant/chunk">).data.text)
    yield* Scope.close(scope, Exit.void)
    assert.isFalse(isAlive(pid))
    assert.deepStrictEqual(yield* session.close, Harness.nothingFound)
  }))

  test("ends a process that ignores the end of its input", Effect.gen(function*() {
    const session = yield* open({ modes: ["stubborn"] })
    const pid = Number((withoutBound(yield* turn(session, ["pid"]))[0] as TurnEvent.Of<"assistant/chunk">).data.text)
    yield* session.close
    assert.isFalse(isAlive(pid))
  }))
})

