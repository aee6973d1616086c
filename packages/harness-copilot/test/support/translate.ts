/** Gives a recording to the translation, as the session would. */
import { ContentLength, type Dialect, type Frame } from "@turnpike/harness"
import { CopilotConversation, CopilotTools } from "@turnpike/harness-copilot"
import { Prompt, Redaction, ToolAllowlist } from "@turnpike/kernel"
import * as fs from "node:fs"

const directory = new URL("../../../../test/fixtures/copilot/1.0.102/", import.meta.url)

export const bytesOf = (name: string): Uint8Array => fs.readFileSync(new URL(`${name}.stdout`, directory))

export const framesOf = (bytes: Uint8Array, chunks: ReadonlyArray<number> = []): ReadonlyArray<Frame.Received> => {
  const decoder = ContentLength.decoder()
  const received: Array<Frame.Received> = []
  let at = 0
  for (const size of [...chunks, bytes.length]) {
    received.push(...decoder.push(bytes.subarray(at, Math.min(bytes.length, at + size))))
    at = Math.min(bytes.length, at + size)
  }
  return [...received, ...decoder.end()]
}

export const asked = (more: Partial<CopilotConversation.Asked> = {}): CopilotConversation.Asked => {
  let count = 0
  return {
    tools: CopilotTools.plan(ToolAllowlist.readOnlyDefault),
    model: undefined,
    sessionId: "00000000-0000-4000-8000-00000000cafe",
    resumes: undefined,
    redact: Redaction.shapes,
    uuid: () => `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`,
    version: "1.0.102",
    ...more
  }
}

export interface Options extends Partial<CopilotConversation.Asked> {
  /** Prompts, in order. */
  readonly prompts?: ReadonlyArray<string>
}

/**
 * Translates all frames. The first two answers are those of the handshake; each
 * later answer with a message's id is that to the prompt, whose own id is put in.
 */
export const translate = (frames: ReadonlyArray<Frame.Received>, options: Options = {}): ReadonlyArray<Dialect.Output> => {
  const prompts = [...(options.prompts ?? ["a prompt"])]
  let state = CopilotConversation.initial(asked(options), "gpt-5.4")
  let answers = 0
  const outputs: Array<Dialect.Output> = []
  const take = (step: Dialect.Step<CopilotConversation.State>) => {
    state = step.state
    outputs.push(...step.outputs)
  }
  for (const item of frames) {
    if (item._tag !== "Frame") throw new Error("the recording holds something that is no frame")
    const { frame } = item
    const isAnswer = frame["method"] === undefined
    if (isAnswer && answers++ < 2) continue
    const { result } = frame
    if (isAnswer && typeof result === "object" && result !== null && "messageId" in result) {
      take(CopilotConversation.prompt(state, Prompt.fromText(prompts.shift() ?? "one prompt too many")))
      take(CopilotConversation.frame(state, { ...frame, id: state.turn?.sendId ?? "none" }))
    } else take(CopilotConversation.frame(state, frame))
  }
  return outputs
}

export const ofRecording = (name: string, options?: Options): ReadonlyArray<Dialect.Output> => translate(framesOf(bytesOf(name)), options)

/** One line for each output, as `test/translations` has them. */
export const toText = (outputs: ReadonlyArray<Dialect.Output>): string =>
  outputs.map((output) => {
    switch (output._tag) {
      case "Event":
        return JSON.stringify(output.event)
      case "Ask": {
        const { respond: _, ...rest } = output
        return `Ask ${JSON.stringify(rest)}`
      }
      default: {
        const { _tag, ...rest } = output
        return `${_tag} ${JSON.stringify(rest)}`
      }
    }
  }).join("\n") + "\n"
