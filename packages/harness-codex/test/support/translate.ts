/** Gives a recording to the translation, as the session would. */
import { type Dialect, Frame } from "@turnpike/harness"
import { CodexConversation, CodexTools, CodexWire } from "@turnpike/harness-codex"
import { Prompt, Redaction, ToolAllowlist } from "@turnpike/kernel"
import { LineSplitter } from "@turnpike/process"
import * as Result from "effect/Result"
import * as fs from "node:fs"

const directory = new URL("../../../../test/fixtures/codex/0.171.0/", import.meta.url)

export const bytesOf = (name: string): Uint8Array => fs.readFileSync(new URL(`${name}.stdout`, directory))

/** What was sent to the program, each with how many frames it had said by then. */
export const sentOf = (name: string): ReadonlyArray<{ readonly after: number; readonly frame: Frame.Frame }> =>
  JSON.parse(fs.readFileSync(new URL(`${name}.meta.json`, directory), "utf8")).sent

export const framesOf = (bytes: Uint8Array): ReadonlyArray<Frame.Frame> => {
  const [splitter, lines] = LineSplitter.push(LineSplitter.initial(), bytes)
  return [...lines, ...LineSplitter.end(splitter)].flatMap((line) => Frame.fromLine(line)).map((item) => {
    if (item._tag !== "Frame") throw new Error("the recording has a line that is no frame")
    return item.frame
  })
}

export const asked = (more: Partial<CodexConversation.Asked> = {}): CodexConversation.Asked => ({
  tools: CodexTools.plan(ToolAllowlist.readOnlyDefault),
  model: undefined,
  resumes: undefined,
  redact: Redaction.shapes,
  version: "0.171.0",
  remarks: [],
  ...more
})

export const thread = (id: string): typeof CodexWire.Thread.Type => ({
  thread: { id },
  model: "gpt-5.4",
  cwd: "/home/user/work",
  sandbox: { type: "readOnly" }
})

/**
 * Translates all frames of a recording, and does what was done when it was made:
 * prompts and interrupts come where they came, answers to requests are left out.
 */
export const ofRecording = (name: string, more: Partial<CodexConversation.Asked> = {}): ReadonlyArray<Dialect.Output> => {
  const frames = framesOf(bytesOf(name))
  const opening = frames.find(({ id, method }) => id === "thread" && method === undefined)
  const read = CodexWire.readThread(opening?.["result"])
  if (Result.isFailure(read)) throw new Error(`${name} begins no thread`)
  let state = CodexConversation.initial(asked(more), read.success)
  const outputs: Array<Dialect.Output> = []
  const take = (step: Dialect.Step<CodexConversation.State>) => {
    state = step.state
    outputs.push(...step.outputs)
  }
  const sent = [...sentOf(name)]
  frames.forEach((frame, index) => {
    while (sent[0] !== undefined && sent[0].after <= index) {
      const { frame: { method, params } } = sent.shift()!
      if (method === "turn/start") take(CodexConversation.prompt(state, Prompt.fromText(textOf(params))))
      if (method === "turn/interrupt") take(CodexConversation.interrupt(state))
    }
    // Taken by the handshake.
    if (frame["id"] !== "initialize" && frame["id"] !== "thread") take(CodexConversation.frame(state, frame))
  })
  return outputs
}

const textOf = (params: unknown): string =>
  typeof params === "object" && params !== null
    ? (params as { readonly input: ReadonlyArray<{ readonly text: string }> }).input.map(({ text }) => text).join("")
    : String(params)

/** One line for each output, as `test/translations` has them; the long bodies of frames are cut. */
export const toText = (outputs: ReadonlyArray<Dialect.Output>): string =>
  outputs.map((output) => {
    switch (output._tag) {
      case "Event":
        return JSON.stringify(output.event)
      case "Late":
        return `Late ${JSON.stringify({ method: output.frame["method"] })}`
      case "Ask": {
        const { respond, ...rest } = output
        const answers = (["allow", "deny", "cancelled"] as const).map((decision) => respond({ decision, reason: "" }))
        return `Ask ${JSON.stringify({ ...rest, answers })}`
      }
      default: {
        const { _tag, ...rest } = output
        return `${_tag} ${JSON.stringify(rest)}`
      }
    }
  }).join("\n") + "\n"
