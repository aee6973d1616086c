/** The words of the wire against Codex's own list of them, as its binary of the tested version generates it. */
import { assert, describe, it } from "@effect/vitest"
import { CodexProgram, CodexWire } from "@turnpike/harness-codex"
import * as fs from "node:fs"

interface Methods {
  readonly version: string
  readonly server_notifications: ReadonlyArray<string>
  readonly server_requests: ReadonlyArray<string>
  readonly client_requests: ReadonlyArray<string>
  readonly client_notifications: ReadonlyArray<string>
}

const own = JSON.parse(
  fs.readFileSync(new URL(`../../../test/fixtures/codex/${CodexProgram.tested}/methods.json`, import.meta.url), "utf8")
) as Methods

/** They come to those who asked for a search, a process, a voice, an import, a review by a model, or changed a thread beside its turns. */
const unused = [
  "autoApprovalReview/strictReviewRequired",
  "command/exec/outputDelta",
  "externalAgentConfig/import/completed",
  "externalAgentConfig/import/progress",
  "fuzzyFileSearch/sessionCompleted",
  "fuzzyFileSearch/sessionUpdated",
  "item/autoApprovalReview/completed",
  "item/autoApprovalReview/started",
  "mcpServer/event/stream/notification",
  "mcpServer/oauthLogin/completed",
  "process/exited",
  "process/outputDelta",
  "thread/archived",
  "thread/attachment/updated",
  "thread/closed",
  "thread/deleted",
  "thread/project/updated",
  "thread/realtime/closed",
  "thread/realtime/error",
  "thread/realtime/item/completed",
  "thread/realtime/item/started",
  "thread/realtime/item/transcript/delta",
  "thread/realtime/itemAdded",
  "thread/realtime/outputAudio/delta",
  "thread/realtime/sdp",
  "thread/realtime/started",
  "thread/realtime/transcript/delta",
  "thread/realtime/transcript/done",
  "thread/reverted",
  "thread/search/partial",
  "thread/section/changed",
  "thread/unarchived",
  "windows/worldWritableWarning",
  "windowsSandbox/setupCompleted"
]

const terms = { cwd: "/", model: undefined, approvalPolicy: "on-request", sandbox: "read-only", system: undefined } as unknown as Parameters<typeof CodexWire.startThread>[1]

describe("Codex's own list of methods", () => {
  it("is that of the version that is tested", () => {
    assert.strictEqual(own.version, CodexProgram.tested)
  })

  it("has no notification that the wire does not know, but for those of parts that Turnpike does not use", () => {
    const unknown = own.server_notifications.filter((method) => {
      const message = CodexWire.read({ method, params: {} })
      return message.kind === "unknown" && message.name === method
    })
    // Should one come all the same, it is told as a notice.
    assert.deepStrictEqual(unknown, unused)
  })

  it("has every request that the wire understands, and the others are answered as what nobody here does", () => {
    const kinds = own.server_requests.map((method) => {
      const message = CodexWire.read({ method, id: 1, params: { threadId: "t", itemId: "i", serverName: "s", permissions: {} } })
      return [method, message.kind]
    })
    assert.deepStrictEqual(kinds.filter(([, kind]) => kind === "request").map(([method]) => method), [
      "item/commandExecution/requestApproval",
      "item/fileChange/requestApproval",
      "item/permissions/requestApproval",
      "mcpServer/elicitation/request"
    ])
    assert.isTrue(kinds.every(([, kind]) => kind === "request" || kind === "unknown request"))
  })

  it("has everything that is said to it", () => {
    const said = [
      CodexWire.initialize("1", "1.0.0"),
      CodexWire.startThread("2", terms),
      CodexWire.resumeThread("3", "t", terms),
      CodexWire.instruct("4", "t", "x"),
      CodexWire.startTurn("5", "t", "x", { approvalPolicy: "on-request", sandboxPolicy: {} } as unknown as Parameters<typeof CodexWire.startTurn>[3]),
      CodexWire.steerTurn("6", "t", "u", "x"),
      CodexWire.interruptTurn("7", "t", "u")
    ].map((frame) => String(frame["method"]))
    assert.deepStrictEqual(said.filter((method) => !own.client_requests.includes(method)), [])
    assert.isTrue(own.client_notifications.includes(String(CodexWire.initialized["method"])))
  })
})
