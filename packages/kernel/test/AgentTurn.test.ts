import { assert, describe, it } from "@effect/vitest"
import { Failure, TurnEvent, type Verdict } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { type AgentSession, AgentTurn, Cancel, Redaction, type SessionDriver, SessionStore, TurnError } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"

const { chunk, end, message } = FakeSession

const receipt = (text: string, kind: "followup" | "steer" | "inject" = "followup", source = "user") =>
  ({ id: text, kind, text, source, time: 0 }) as const

interface Ran {
  readonly verdict: Verdict.Verdict
  readonly written: ReadonlyArray<string>
}

const word = (body: Parameters<SessionDriver.OpenTurn["append"]>[0]): string =>
  body.type === "assistant/chunk" || body.type === "assistant/message" ? `${body.type} ${body.data.text}` : body.type

const run = (
  session: AgentSession.AgentSession | Effect.Effect<AgentSession.AgentSession, TurnError.TurnError>,
  more: { readonly cancel?: Cancel.CancelToken; readonly messages?: SessionDriver.OpenTurn["messages"]; readonly env?: Record<string, string>; readonly fails?: string } = {}
): Effect.Effect<Ran, SessionStore.SessionStoreError> =>
  Effect.gen(function*() {
    const written: Array<string> = []
    const verdict = yield* AgentTurn.make({
      session: Effect.isEffect(session) ? session : Effect.succeed(session),
      redact: Redaction.shapes,
      credentials: { inheritedEnv: {}, env: more.env ?? {}, credentials: undefined },
      grace: "5 seconds"
    })({
      turn: 1,
    trigger: { kind: "message", source: "user" },
      messages: more.messages ?? [receipt("hello")],
      cancel: more.cancel ?? Cancel.makeUnsafe(),
      claimNextStep: Effect.succeed([]),
      append: (body) =>
        Effect.suspend(() => {
          if (body.type === more.fails) return Effect.fail(new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", "full") }))
          written.push(word(body))
          return Effect.succeed({ seq: 0, time: 0, ...body })
        })
    })
    return { verdict, written }
  }).pipe(Effect.provideService(References.MinimumLogLevel, "None"))

describe("AgentTurn", () => {
  it.effect("writes what the session says, in balance, and judges its ending", () =>
    Effect.gen(function*() {
      const { verdict, written } = yield* run(FakeSession.make(() =>
        Stream.make(chunk("he"), chunk("llo"), message("hello"), TurnEvent.make("tool/call", { call_id: "a", name: "Bash" }), end("hello"))
      ))
      assert.deepStrictEqual(verdict, { type: "completed" })
      assert.deepStrictEqual(written, ["assistant/chunk he", "assistant/chunk llo", "assistant/message hello", "tool/call", "tool/result", "step/end"])
    }))

  it.effect("makes one prompt of all messages, each byte for byte", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      yield* run({ ...FakeSession.echo, runTurn: (prompt) => {
        asked.push(prompt.text, prompt.source)
        return FakeSession.echo.runTurn(prompt)
      } }, { messages: [receipt(" ctx\n", "inject", "plugin:x"), receipt("go", "followup", "user")] })
      assert.deepStrictEqual(asked, [" ctx\n\n\ngo", "user"])
    }))

  it.effect("is an error where the session cannot be opened, fails, or does not end", () =>
    Effect.gen(function*() {
      const code = (ran: Ran) => ran.verdict.type === "error" ? ran.verdict.error.code : ran.verdict.type
      const failing = TurnError.reported(Failure.make("RATE_LIMIT", "slow down"))
      assert.deepStrictEqual(
        [
          code(yield* run(Effect.fail(TurnError.exec(Failure.make("HARNESS_NOT_FOUND", "no claude"))))),
          code(yield* run(FakeSession.make(() => Stream.concat(Stream.make(chunk("a")), Stream.fail(failing))))),
          code(yield* run(FakeSession.make(() => Stream.make(chunk("a")))))
        ],
        ["HARNESS_NOT_FOUND", "RATE_LIMIT", "NO_TERMINAL"]
      )
    }))

  it.effect("asks the session to end and lets it, and cuts it off when the grace is over", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const polite = FakeSession.make(
        () => Stream.concat(Stream.make(chunk("a")), Stream.fromEffect(Effect.as(Deferred.await(asked), end("a", { stop_reason: "aborted" })))),
        Effect.asVoid(Deferred.succeed(asked, undefined))
      )
      const deaf = FakeSession.make(() => Stream.concat(Stream.make(chunk("a")), Stream.never))
      const verdicts: Array<Verdict.Verdict> = []
      for (const session of [polite, deaf]) {
        const cancel = Cancel.makeUnsafe()
        const fiber = yield* Effect.forkChild(run(session, { cancel }))
        yield* TestClock.adjust("1 second")
        yield* cancel.request({ cause: "user", mode: "graceful" })
        yield* TestClock.adjust("5 seconds")
        verdicts.push((yield* Fiber.join(fiber)).verdict)
      }
      assert.deepStrictEqual(verdicts, [
        { type: "aborted", cause: "user", mode: "graceful" },
        { type: "aborted", cause: "user", mode: "hard" }
      ])
    }))

  it.effect("is cut off by a hard request, and nothing of it runs any more", () =>
    Effect.gen(function*() {
      const cancel = Cancel.makeUnsafe()
      let cleaned = false
      const session = FakeSession.make(() => Stream.never.pipe(Stream.ensuring(Effect.sync(() => {
        cleaned = true
      }))))
      const fiber = yield* Effect.forkChild(run(session, { cancel }))
      yield* TestClock.adjust("1 second")
      yield* cancel.request({ cause: "timeout", mode: "hard" })
      assert.deepStrictEqual((yield* Fiber.join(fiber)).verdict, { type: "aborted", cause: "timeout", mode: "hard" })
      assert.isTrue(cleaned)
    }))

  it.effect("repeats no credential, also not one that comes in pieces", () =>
    Effect.gen(function*() {
      const { written } = yield* run(
        FakeSession.make(() => Stream.make(chunk("it is sekret-"), chunk("value-1"), end("it is sekret-value-1"))),
        { env: { API_KEY: "sekret-value-1" } }
      )
      assert.deepStrictEqual(written, ["assistant/chunk it is ", "assistant/chunk [REDACTED]", "assistant/message it is [REDACTED]", "step/end"])
    }))

  it.effect("fails where the log cannot be written, and stops the session", () =>
    Effect.gen(function*() {
      let cleaned = false
      const session = FakeSession.make(() =>
        Stream.concat(Stream.make(message("a")), Stream.never).pipe(Stream.ensuring(Effect.sync(() => {
          cleaned = true
        }))))
      const error = yield* Effect.flip(run(session, { fails: "assistant/message" }))
      assert.deepStrictEqual([error.failure.code, cleaned], ["STORE_FULL", true])
    }))
})
