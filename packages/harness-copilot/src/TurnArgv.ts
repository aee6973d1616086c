/**
 * The arguments of one turn in Copilot's text mode, `copilot -p`: one process a
 * turn, the prompt in the argument list, the answer on standard output.
 *
 * The form cannot carry every prompt; {@link refusal} says which, so that none
 * is ever changed. The server mode of `CopilotHarness` carries them all.
 */
import type { ToolAllowlist } from "@turnpike/kernel"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"

/**
 * The longest prompt, in bytes: Linux passes at most 128 KiB in one argument, its
 * end included.
 */
export const maxPromptBytes = 128 * 1024 - 1

/** A prompt that an argument cannot carry as it is. Nothing was started. */
export class PromptRefused extends Schema.TaggedError<PromptRefused>()("PromptRefused", {
  why: Schema.Literals(["empty", "leading-dash", "too-long", "nul", "lone-surrogate"]),
  bytes: Schema.Int
}) {
  override get message() {
    const reasons = {
      "empty": "it is empty, which Copilot takes for no prompt",
      "leading-dash": "it begins with a dash, which Copilot takes for an option",
      "too-long": `it has ${this.bytes} bytes, and an argument holds at most ${maxPromptBytes}`,
      "nul": "it has a NUL character, which no argument can hold",
      "lone-surrogate": "it has half of a character, which no UTF-8 can hold"
    }
    return `the prompt cannot be given to Copilot in its text mode: ${reasons[this.why]}; change it, or use the copilot harness, which takes every prompt`
  }
}

/** Why a prompt cannot be carried; `undefined` where it can. */
export const refusal = (prompt: string): PromptRefused | undefined => {
  const bytes = Buffer.byteLength(prompt)
  const refuse = (why: PromptRefused["why"]) => new PromptRefused({ why, bytes })
  if (prompt === "") return refuse("empty")
  if (prompt.includes("\0")) return refuse("nul")
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(prompt)) return refuse("lone-surrogate")
  if (prompt.startsWith("-")) return refuse("leading-dash")
  return bytes > maxPromptBytes ? refuse("too-long") : undefined
}

/**
 * The options that stand for an allow-list: `--allow-tool T` for each tool in
 * order, or `--allow-all-tools` alone. Never `--allow-all`, which would open all
 * paths and URLs, too. Names are Copilot's, or the neutral ones that it shares.
 */
export const toCopilotArgs = (list: ToolAllowlist.ToolAllowlist): ReadonlyArray<string> =>
  list._tag === "DangerousAll"
    ? ["--allow-all-tools"]
    : list.tools.flatMap((tool) => ["--allow-tool", tool])

/**
 * The arguments of a turn, in this order: the session that it begins or
 * continues, no colours, the answer alone, the prompt as one argument and
 * unchanged, the allow-list. The program is the runner's to name.
 */
export const buildTurnArgv = (sessionId: string, prompt: string, allowlist: ToolAllowlist.ToolAllowlist): ReadonlyArray<string> => [
  "--session-id",
  sessionId,
  "--no-color",
  "-s",
  "-p",
  prompt,
  ...toCopilotArgs(allowlist)
]
