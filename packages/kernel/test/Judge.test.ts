import { assert, describe, it } from "@effect/vitest"
import { Contracts, Failure, TurnEvent, Verdict } from "@turnpike/contract"
import * as Result from "effect/Result"
import { type Cancel, Judge } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"
import * as Random from "./support/Random.ts"

type End = Partial<TurnEvent.TurnEnd["data"]>

/** The harness's ending, read before or after the first request to stop. */
const ended = (when: "before" | "after", data: End = {}): Partial<Judge.Evidence> => ({
  ending: { end: FakeSession.end("the answer", data).data, beforeStop: when === "before" }
})

const failed = (when: "before" | "after", code: Failure.FailureCode = "HARNESS_FAILED"): Partial<Judge.Evidence> => ({
  failure: { failure: Failure.make(code, "it broke"), beforeStop: when === "before" }
})

const stops = (...requests: ReadonlyArray<`${Verdict.AbortCause} ${Verdict.CancelMode}`>): Partial<Judge.Evidence> => ({
  stops: requests.map((request) => {
    const [cause, mode] = request.split(" ")
    return { cause: cause as Verdict.AbortCause, mode: mode as Verdict.CancelMode }
  })
})

const cutOff: Partial<Judge.Evidence> = { cutOff: true }
const tasks = (...ids: ReadonlyArray<string>): Partial<Judge.Evidence> => ({ lostTasks: ids.map((id) => ({ id })) })

const judge = (...parts: ReadonlyArray<Partial<Judge.Evidence>>): Verdict.Verdict =>
  Judge.judge(Object.assign({ stops: [], cutOff: false, lostTasks: [] }, ...parts) as Judge.Evidence)

/** A verdict in a word or three. */
const show = (verdict: Verdict.Verdict): string => {
  switch (verdict.type) {
    case "error":
      return `error ${verdict.error.code}`
    case "aborted":
      return `aborted ${verdict.cause} ${verdict.mode}`
    default:
      return verdict.type
  }
}

const table: ReadonlyArray<readonly [string, ReadonlyArray<Partial<Judge.Evidence>>, string]> = [
  // The harness's own ending.
  ["an answer", [ended("before")], "completed"],
  ["an answer and exit 0", [ended("before", { exit_code: 0 })], "completed"],
  ["work without an answer", [ended("before", { text: "", worked: true })], "completed"],
  ["neither an answer nor work", [ended("before", { text: "" })], "error EMPTY_RESPONSE"],
  ["an answer of white space without work", [ended("before", { text: " \n\t" })], "error EMPTY_RESPONSE"],
  ["success and then exit 1", [ended("before", { exit_code: 1 })], "error HARNESS_FAILED"],
  ["success and then a negative exit code", [ended("before", { exit_code: -1 })], "error HARNESS_FAILED"],
  ["no answer and exit 1", [ended("before", { text: "", exit_code: 1 })], "error HARNESS_FAILED"],
  ["the output limit", [ended("before", { stop_reason: "max-tokens" })], "max-tokens"],
  ["the output limit and exit 1", [ended("before", { stop_reason: "max-tokens", exit_code: 1 })], "max-tokens"],
  ["the limit of model calls", [ended("before", { stop_reason: "max-turns" })], "max-turns"],
  ["a refusal", [ended("before", { stop_reason: "refusal", text: "" })], "refusal"],
  ["an abort that nobody of ours asked for", [ended("before", { stop_reason: "aborted" })], "aborted hook graceful"],
  ["an answer with denials", [ended("before", { denials: [{ tool_name: "Bash" }] })], "completed"],
  // Failures and silence.
  ["nothing at all", [], "error NO_TERMINAL"],
  ["nothing, and the turn was cut off by nobody", [cutOff], "error NO_TERMINAL"],
  ["a failure", [failed("before", "RATE_LIMIT")], "error RATE_LIMIT"],
  ["an ending and then a failure", [ended("before"), failed("before", "HARNESS_PROTOCOL")], "error HARNESS_PROTOCOL"],
  ["the output limit and then a failure", [ended("before", { stop_reason: "max-tokens" }), failed("before")], "max-tokens"],
  ["an ending, and the session could not be saved", [ended("before"), failed("before", "DATA_DIR_UNUSABLE")], "error DATA_DIR_UNUSABLE"],
  ["a failure that says that a limit was broken", [failed("before", "POLICY_VIOLATION")], "aborted policy_violation hard"],
  ["a broken limit, and then a hard stop", [failed("before", "POLICY_VIOLATION"), stops("user hard")], "aborted policy_violation hard"],
  ["a stop, and a limit broken after it", [stops("user graceful"), failed("after", "POLICY_VIOLATION")], "aborted user graceful"],
  // Tasks.
  ["an answer, and tasks that ended with the harness", [ended("before"), tasks("a", "b")], "error BACKGROUND_KILLED"],
  ["a refusal, and tasks that ended with the harness", [ended("before", { stop_reason: "refusal" }), tasks("a")], "refusal"],
  ["a stop while the run waited for tasks", [ended("before"), tasks("a"), stops("user graceful")], "aborted user graceful"],
  ["a hard stop while the run waited for tasks", [ended("before"), tasks("a"), stops("parent hard")], "aborted parent hard"],
  ["a timeout while the run waited for tasks", [ended("before"), tasks("a"), stops("timeout graceful")], "aborted timeout graceful"],
  ["the output limit, and a stop while the run waited", [ended("before", { stop_reason: "max-tokens" }), tasks("a"), stops("user graceful")], "max-tokens"],
  ["a failure after the ending, and a stop while the run waited", [ended("before"), failed("before"), tasks("a"), stops("user hard")], "error HARNESS_FAILED"],
  // A terminal record read before the stop stands.
  ["an ending and then a graceful stop", [ended("before"), stops("user graceful")], "completed"],
  ["an ending and then a hard stop", [ended("before"), stops("user hard")], "completed"],
  ["an ending and then the time limit", [ended("before"), stops("timeout graceful", "timeout hard")], "completed"],
  ["an ending and then a lost channel", [ended("before"), stops("channel_lost hard")], "completed"],
  ["a refusal and then a stop", [ended("before", { stop_reason: "refusal" }), stops("user graceful")], "refusal"],
  ["success, exit 1, and then a stop", [ended("before", { exit_code: 1 }), stops("user graceful")], "error HARNESS_FAILED"],
  // What follows the stop is no cause.
  ["our time limit, and then an end as if all were well", [stops("timeout graceful"), ended("after", { exit_code: 0 })], "aborted timeout graceful"],
  ["our time limit, and then exit 143", [stops("timeout graceful", "timeout hard"), failed("after"), cutOff], "aborted timeout hard"],
  ["a stop, and the harness ended its turn", [stops("user graceful"), ended("after", { stop_reason: "aborted" })], "aborted user graceful"],
  ["a stop, and the harness answered all the same", [stops("user graceful"), ended("after")], "aborted user graceful"],
  ["a stop, and the harness refused", [stops("user graceful"), ended("after", { stop_reason: "refusal" })], "aborted user graceful"],
  ["a stop, and a failure after it", [stops("user graceful"), failed("after")], "aborted user graceful"],
  ["a stop, an ending and a failure after it", [stops("user graceful"), ended("after"), failed("after")], "aborted user graceful"],
  ["a stop that was not heard, cut off after the grace", [stops("user graceful", "user hard"), cutOff], "aborted user hard"],
  ["a graceful stop of a turn that was cut off", [stops("user graceful"), cutOff], "aborted user hard"],
  ["a stop, and tasks were killed with the session", [stops("user graceful"), ended("after"), tasks("a")], "aborted user graceful"],
  // Rank among causes that stand.
  ["a failure, and then a graceful stop", [failed("before"), stops("user graceful")], "error HARNESS_FAILED"],
  ["a failure, and then the time limit", [failed("before"), stops("timeout graceful")], "error HARNESS_FAILED"],
  ["a failure, and then a hard stop", [failed("before"), stops("user hard")], "aborted user hard"],
  ["a failure, and then a termination", [failed("before"), stops("parent hard")], "aborted parent hard"],
  ["a failure, and then a lost channel", [failed("before"), stops("channel_lost hard")], "error HARNESS_FAILED"],
  ["a graceful stop and the time limit", [stops("user graceful", "timeout graceful")], "aborted timeout graceful"],
  ["the time limit and a graceful stop", [stops("timeout graceful", "user graceful"), ended("after")], "aborted timeout graceful"],
  ["the time limit and a hard stop", [stops("timeout graceful", "user hard"), cutOff], "aborted user hard"],
  ["a graceful and then a hard stop", [stops("user graceful", "user hard"), cutOff], "aborted user hard"],
  ["a broken limit", [stops("policy_violation hard"), cutOff], "aborted policy_violation hard"],
  ["a lost channel", [stops("channel_lost hard"), cutOff], "aborted channel_lost hard"],
  ["two hard stops", [stops("user hard", "parent hard"), cutOff], "aborted user hard"],
  ["a closed session", [stops("disposed hard"), cutOff], "aborted disposed hard"],
  ["silence", [stops("silence graceful"), ended("after")], "aborted silence graceful"],
  ["a used-up budget", [stops("budget graceful"), ended("after")], "aborted budget graceful"],
  ["a stop before anything began", [stops("user graceful")], "aborted user graceful"]
]

describe("judge", () => {
  for (const [evidence, parts, expected] of table) {
    it(`${evidence}: ${expected}`, () => {
      assert.strictEqual(show(judge(...parts)), expected)
    })
  }

  it("keeps the failure's own words", () => {
    const failure = Failure.make("RATE_LIMIT", "wait", { retry_after_ms: 5, http_status: 429 })
    assert.deepStrictEqual(judge({ failure: { failure, beforeStop: true } }), { type: "error", error: failure })
  })

  it("names the tasks that were lost, the first five of them", () => {
    const verdict = judge(ended("before"), { lostTasks: [{ id: "1", description: "server" }, ...["2", "3", "4", "5", "6", "7"].map((id) => ({ id }))] })
    assert.strictEqual(Verdict.failureOf(verdict)?.message, "7 background task(s) ended with the harness: server, 2, 3, 4, 5 and 2 more")
  })

  it("makes a verdict of any evidence, and success only of an ending without error that nothing came before", () => {
    const decode = Contracts.decode("verdict")
    for (let seed = 0; seed < 5000; seed++) {
      const random = Random.make(seed)
      const evidence: Judge.Evidence = {
        ending: random.chance(0.6)
          ? {
            end: FakeSession.end(random.pick(["", " ", "answer"]), {
              stop_reason: random.pick(TurnEvent.StopReason.literals),
              worked: random.chance(0.5),
              ...(random.chance(0.3) ? { exit_code: random.pick([0, 1, -15]) } : {})
            }).data,
            beforeStop: random.chance(0.5)
          }
          : undefined,
        failure: random.chance(0.4) ? { failure: Failure.make("INTERNAL", "x"), beforeStop: random.chance(0.5) } : undefined,
        stops: Array.from({ length: random.below(4) }, (): Cancel.Request => ({
          cause: random.pick(Verdict.AbortCause.literals),
          mode: random.pick(Verdict.CancelMode.literals)
        })),
        cutOff: random.chance(0.3),
        lostTasks: random.chance(0.3) ? [{ id: "t" }] : []
      }
      const verdict = Judge.judge(evidence)
      assert.isTrue(Result.isSuccess(decode(verdict)), `seed ${seed}`)
      if (verdict.type !== "completed") continue
      const { cutOff: _, ending, failure, lostTasks, stops: asked } = evidence
      assert.strictEqual(ending?.end.stop_reason, "completed", `seed ${seed}`)
      assert.isTrue(ending?.beforeStop === true || asked.length === 0, `seed ${seed}`)
      assert.isTrue(ending?.end.exit_code === undefined || ending.end.exit_code === 0, `seed ${seed}`)
      assert.isTrue(failure === undefined || (!failure.beforeStop && asked.length > 0), `seed ${seed}`)
      assert.deepStrictEqual(lostTasks, [], `seed ${seed}`)
    }
  })
})
