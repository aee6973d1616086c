/** Gives a recording to the translation, as the session would. */
import { type Dialect, Frame } from "@turnpike/harness"
import { ClaudeConversation, ClaudeTools } from "@turnpike/harness-claude"
import { Prompt, Redaction, ToolAllowlist } from "@turnpike/kernel"
import { LineSplitter } from "@turnpike/process"
import * as fs from "node:fs"

const directory = new URL("../../../../test/fixtures/claude/2.1.332/", import.meta.url)

export const bytesOf = (name: string): Uint8Array => fs.readFileSync(new URL(`${name}.stdout`, directory))

export const framesOf = (bytes: Uint8Array, chunks: ReadonlyArray<number> = []): ReadonlyArray<Frame.Received> => {
  let splitter = LineSplitter.initial()
  const received: Array<Frame.Received> = []
  let at = 0
  for (const size of [...chunks, bytes.length]) {
    const [next, lines] = LineSplitter.push(splitter, bytes.subarray(at, Math.min(bytes.length, at + size)))
    splitter = next
    received.push(...lines.flatMap((line) => Frame.fromLine(line)))
    at = Math.min(bytes.length, at + size)
  }
  return [...received, ...LineSplitter.end(splitter).flatMap((line) => Frame.fromLine(line))]
}

export const asked = (more: Partial<ClaudeConversation.Asked> = {}): ClaudeConversation.Asked => {
  let count = 0
  return {
    tools: ClaudeTools.plan(ToolAllowlist.readOnlyDefault),
    model: undefined,
    resumes: undefined,
    redact: Redaction.shapes,
    uuid: () => `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`,
    takesPromptsAsText: true,
    version: "2.1.332",
    remarks: [],
    ...more
  }
}

export interface Options extends Partial<ClaudeConversation.Asked> {
  /** Prompts, in order. */
  readonly prompts?: ReadonlyArray<string>
  /** An interrupt is asked for before the frame of this index. */
  readonly interruptBefore?: number
}

/**
 * Translates all frames. A prompt is given where the recording says that it was
 * queued; in recordings that say nothing of it, before the `system/init` of a
 * turn that nobody has begun.
 */
export const translate = (frames: ReadonlyArray<Frame.Received>, options: Options = {}): ReadonlyArray<Dialect.Output> => {
  const prompts = [...(options.prompts ?? ["a prompt"])]
  const announces = frames.some((item) => item._tag === "Frame" && item.frame["type"] === "command_lifecycle")
  let state = ClaudeConversation.initial(asked(options))
  const outputs: Array<Dialect.Output> = []
  const take = (step: Dialect.Step<ClaudeConversation.State>) => {
    state = step.state
    outputs.push(...step.outputs)
  }
  frames.forEach((item, index) => {
    if (item._tag !== "Frame") return
    const { state: lifecycle, subtype, type } = item.frame
    if (index === options.interruptBefore) take(ClaudeConversation.interrupt(state))
    const begins = announces ? type === "command_lifecycle" && lifecycle === "queued" : subtype === "init" && state.turn === undefined
    if (begins) {
      const text = prompts.shift()
      if (text !== undefined) take(ClaudeConversation.prompt(state, Prompt.fromText(text)))
    }
    take(ClaudeConversation.frame(state, item.frame))
  })
  return outputs
}

export const ofRecording = (name: string, options?: Options): ReadonlyArray<Dialect.Output> => translate(framesOf(bytesOf(name)), options)

/** One line for each output, as `test/translations` has them; the long bodies of frames are cut. */
export const toText = (outputs: ReadonlyArray<Dialect.Output>): string =>
  outputs.map((output) => {
    switch (output._tag) {
      case "Event":
        return JSON.stringify(output.event)
      case "Late":
        return `Late ${JSON.stringify({ type: output.frame["type"], subtype: output.frame["subtype"] })}`
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
