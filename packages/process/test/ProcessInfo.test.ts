import { assert, describe, it } from "@effect/vitest"
import * as ProcessInfo from "../src/ProcessInfo.ts"

describe("ProcessInfo", () => {
  it("redacts a command line as a whole, bounds it afterwards, and cuts no character in two", () => {
    const secret = "s".repeat(20)
    const redact = (text: string) => text.replaceAll(secret, "*")
    assert.strictEqual(ProcessInfo.shownCommand(`${"a".repeat(250)}${secret}b`, redact), `${"a".repeat(250)}*b`)
    assert.strictEqual(ProcessInfo.shownCommand(`${"a".repeat(255)}😀`, redact), "a".repeat(255))
    assert.strictEqual(ProcessInfo.shownCommand(`${"a".repeat(254)}😀b`, redact), `${"a".repeat(254)}😀`)
  })
})
