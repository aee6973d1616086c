/**
 * Prompts that are typed, or read, line by line.
 *
 * A line that ends in a backslash goes on in the next one. `/exit` and the end
 * of input close it, and so does Ctrl-C twice in a row. Where asking is
 * interrupted, the lines of a prompt that is open are kept for the next time.
 */
import type { ChannelError } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type { Screen } from "./Screen.ts"

/** What was read where a prompt was asked for. */
export type Reading =
  | { readonly _tag: "Line"; readonly text: string }
  | { readonly _tag: "Interrupt"; readonly wasEmpty: boolean }
  /** A line that is no text; `why` is a sentence. */
  | { readonly _tag: "Bad"; readonly why: string }
  | { readonly _tag: "End" }

export type Next =
  | { readonly _tag: "Ready"; readonly text: string }
  | { readonly _tag: "Closed"; readonly wasInterrupted: boolean }

export interface Options {
  /** Asks for a line; `continued` is true for the rest of a prompt that a backslash left open. */
  readonly read: (continued: boolean) => Effect.Effect<Reading, ChannelError.ChannelError>
  readonly screen: Screen
}

export interface TerminalPrompts {
  readonly next: Effect.Effect<Next, ChannelError.ChannelError>
  /** Whether a line could not be read. */
  readonly hasFailed: () => boolean
}

const exitCommands: ReadonlyArray<string> = ["/exit", "/quit"]

export const make = ({ read, screen }: Options): TerminalPrompts => {
  let hasFailed = false
  let interrupts = 0
  let prompt = ""
  let isOpen = false
  const clear = () => {
    isOpen = false
    prompt = ""
  }

  const next: TerminalPrompts["next"] = Effect.gen(function*() {
    while (true) {
      const typed: Reading = yield* read(isOpen)
      if (typed._tag === "End") return { _tag: "Closed", wasInterrupted: false }
      if (typed._tag === "Interrupt") {
        interrupts = typed.wasEmpty && !isOpen ? interrupts + 1 : 0
        if (interrupts === 2) return { _tag: "Closed", wasInterrupted: true }
        if (interrupts === 1) yield* screen.show([{ to: "aside", text: "(Ctrl-C again, Ctrl-D or /exit to leave)\n" }])
        clear()
        continue
      }
      interrupts = 0
      if (typed._tag === "Bad") {
        hasFailed = true
        clear()
        yield* screen.show([{ to: "aside", text: `${typed.why}; nothing was asked\n` }])
        continue
      }
      isOpen = typed.text.endsWith("\\")
      prompt += isOpen ? `${typed.text.slice(0, -1)}\n` : typed.text
      if (isOpen) continue
      const text = prompt
      clear()
      if (exitCommands.includes(text.trim())) return { _tag: "Closed", wasInterrupted: false }
      if (text.trim() !== "") return { _tag: "Ready", text }
    }
  })

  return { next, hasFailed: () => hasFailed }
}
