import { assert, describe, it } from "@effect/vitest"
import { Harness, Permission, Redaction, ToolAllowlist } from "../src/index.ts"
import * as FakeSession from "./support/FakeSession.ts"

const least = { sessionId: FakeSession.sessionId, cwd: "/project" }

describe("options", () => {
  it("are the careful choices where nothing is given", () => {
    assert.deepStrictEqual(Harness.options(least), {
      ...least,
      resume: undefined,
      model: undefined,
      system: undefined,
      tools: ToolAllowlist.readOnlyDefault,
      permission: Permission.deny,
      inheritedEnv: {},
      env: {},
      credentials: undefined,
      program: undefined,
      configDir: undefined,
      redact: Redaction.shapes
    })
  })

  it("are what is given otherwise", () => {
    const given = { ...least, model: "m", tools: ToolAllowlist.dangerousAll, env: { A: "1" } }
    assert.deepStrictEqual(Harness.options(given), { ...Harness.options(least), ...given })
  })
})
