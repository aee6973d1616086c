import { Contracts, Failure } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"

const entries = Object.entries(Failure.codes)

describe("Failure", () => {
  it("has codes of one form", () => {
    assert.deepStrictEqual(entries.map(([code]) => code).filter((code) => !/^[A-Z]+(_[A-Z]+)*$/u.test(code)), [])
  })

  it("says for every code what to do, in whole sentences", () => {
    assert.deepStrictEqual(entries.filter(([, { remedy }]) => !/^[A-Z].*\.$/u.test(remedy)).map(([code]) => code), [])
  })

  it("gives an occurrence what holds for its code", () => {
    assert.deepStrictEqual(Failure.make("SESSION_BUSY", "run 7 holds the session"), {
      code: "SESSION_BUSY",
      message: "run 7 holds the session",
      retryable: true,
      remedy: Failure.codes.SESSION_BUSY.remedy
    })
  })

  it("lets an occurrence know better", () => {
    assert.deepStrictEqual(
      Failure.make("SERVER", "the service answered 501", { retryable: false, http_status: 501, remedy: "Use another model." }),
      { code: "SERVER", message: "the service answered 501", retryable: false, remedy: "Use another model.", http_status: 501 }
    )
  })

  it("tells the caller's mistakes from the world's by the exit code before a start", () => {
    const codes = Object.keys(Failure.codes) as ReadonlyArray<Failure.FailureCode>
    assert.deepStrictEqual(codes.filter((code) => Failure.exitCodeBeforeStart(code) === 2), [
      "USAGE",
      "INVALID_SPEC",
      "EMPTY_TASK",
      "NOT_AVAILABLE",
      "HARNESS_UNKNOWN"
    ])
  })

  it("makes failures that the contract takes", () => {
    const decode = Contracts.check("failure")
    for (const code of Object.keys(Failure.codes) as ReadonlyArray<Failure.FailureCode>) {
      const failure = Failure.make(code, "something happened")
      assert.deepStrictEqual(decode(failure), Result.succeed(failure))
    }
  })
})
