import { assert, describe, it } from "@effect/vitest"
import * as ChildEnvironment from "../src/ChildEnvironment.ts"

describe("ChildEnvironment", () => {
  it("removes agents' marks and keeps a person's settings", () => {
    assert.deepStrictEqual(
      ChildEnvironment.make({
        PATH: "/bin",
        CLAUDECODE: "1",
        CLAUDE_CODE_ENTRYPOINT: "cli",
        CLAUDE_CODE_SESSION_ID: "s",
        CLAUDE_CODE_MESSAGING_TOKEN: "secret",
        CLAUDE_PID: "1",
        CLAUDE_CODE_OAUTH_TOKEN: "token",
        CLAUDE_CODE_USE_BEDROCK: "1",
        CLAUDE_CODE_MAX_RETRIES: "3",
        CLAUDE_CODE_GIT_BASH_PATH: "/bin/bash",
        CLAUDE_CONFIG_DIR: "/claude",
        CODEX_THREAD_ID: "t",
        CODEX_HOME: "/codex",
        COPILOT_ALLOW_ALL: "true",
        COPILOT_PROVIDER_BASE_URL: "http://127.0.0.1",
        GEMINI_CLI: "1",
        ABSENT: undefined
      }),
      {
        PATH: "/bin",
        CLAUDE_CODE_OAUTH_TOKEN: "token",
        CLAUDE_CODE_USE_BEDROCK: "1",
        CLAUDE_CODE_MAX_RETRIES: "3",
        CLAUDE_CODE_GIT_BASH_PATH: "/bin/bash",
        CLAUDE_CONFIG_DIR: "/claude",
        CODEX_HOME: "/codex",
        COPILOT_PROVIDER_BASE_URL: "http://127.0.0.1"
      }
    )
  })

  it("lets changes set, replace and remove, also a mark", () => {
    assert.deepStrictEqual(
      ChildEnvironment.make({ PATH: "/bin", HOME: "/home/me" }, { HOME: undefined, PATH: "/usr/bin", CLAUDECODE: "1" }),
      { PATH: "/usr/bin", CLAUDECODE: "1" }
    )
  })
})
