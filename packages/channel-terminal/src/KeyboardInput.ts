/**
 * Lines that a person types, with the editing and the history of `node:readline`.
 *
 * The keyboard is taken only while a line is asked for: while a turn runs the
 * terminal is in its ordinary mode, and Ctrl-C is a signal. What is pasted
 * beyond the line is kept for the next ones, and a Ctrl-D typed while a turn
 * runs ends the input when the next line is asked for.
 */
import * as Effect from "effect/Effect"
import * as readline from "node:readline"
import type { Readable, Writable } from "node:stream"

export type Typed =
  | { readonly _tag: "Line"; readonly text: string }
  /** Ctrl-C. What had been typed is dropped. */
  | { readonly _tag: "Interrupt"; readonly wasEmpty: boolean }
  /** Ctrl-D on an empty line, or the terminal went away. */
  | { readonly _tag: "End" }

export interface KeyboardInput {
  /** Asks for a line. Interrupting it gives the keyboard back, and keeps what had been typed for the next time. */
  readonly ask: (prompt: string) => Effect.Effect<Typed>
  /** Asks a question whose answer is not remembered and which nothing pasted before answers. */
  readonly question: (prompt: string) => Effect.Effect<Typed>
}

const historySize = 200

/**
 * A Ctrl-D that the terminal took in its ordinary mode is a NUL where it is read
 * in another one (observed on Linux). That is also what Ctrl-Space sends, so it
 * counts only where it was there before anybody could type: 100 ms.
 */
const endTypedAhead = "\0"
const typedAheadMillis = 100

export const make = (input: Readable, output: Writable): KeyboardInput => {
  let history: ReadonlyArray<string> = []
  const pasted: Array<string> = []
  /** The beginning of a line that was pasted after the last whole one. */
  let begun = ""
  let ended = false

  const read = (prompt: string, keepsHistory: boolean): Effect.Effect<Typed> =>
    Effect.callback((resume) => {
      // A stream that has ended says so once: an interface made afterwards would wait for ever.
      if (input.readableEnded || input.destroyed) {
        ended = true
        return resume(Effect.succeed({ _tag: "End" }))
      }
      const lines = readline.createInterface({
        input,
        output,
        prompt,
        terminal: true,
        historySize: keepsHistory ? historySize : 0,
        ...(keepsHistory ? { history: [...history] } : {})
      })
      let answer: Typed | undefined
      let isEarly = true
      const early = setTimeout(() => {
        isEarly = false
      }, typedAheadMillis)
      const onKey = (_text: string | undefined, key: readline.Key | undefined) => {
        if (!isEarly || key?.sequence !== endTypedAhead || lines.line !== "") return
        if (answer === undefined && keepsHistory) lines.close()
        else ended = true
      }
      input.on("keypress", onKey)
      const close = () => {
        if (keepsHistory && answer?._tag === "Line") begun = lines.line
        lines.close()
      }
      // Closing at once would drop the rest of what was pasted.
      const finish = (typed: Typed) => {
        answer = typed
        setImmediate(close)
      }
      if (keepsHistory) {
        lines.on("history", (next) => {
          history = next
        })
      }
      lines.on("line", (text) => {
        if (answer === undefined) finish({ _tag: "Line", text })
        else if (keepsHistory) pasted.push(text)
      })
      lines.on("SIGINT", () => {
        output.write("\n")
        finish({ _tag: "Interrupt", wasEmpty: lines.line === "" })
      })
      lines.on("close", () => {
        clearTimeout(early)
        input.off("keypress", onKey)
        if (answer === undefined) {
          ended = true
          output.write("\n")
        }
        input.pause()
        resume(Effect.succeed(answer ?? { _tag: "End" }))
      })
      lines.prompt()
      if (keepsHistory && begun !== "") {
        lines.write(begun)
        begun = ""
      }
      return Effect.sync(() => {
        answer = { _tag: "End" }
        if (keepsHistory) {
          begun = lines.line
          // What is written next stands where the line stood, also where it took several rows.
          readline.moveCursor(output, 0, -lines.getCursorPos().rows)
          readline.cursorTo(output, 0)
          readline.clearScreenDown(output)
        }
        lines.close()
      })
    })

  return {
    ask: (prompt) =>
      Effect.suspend(() => {
        const text = pasted.shift()
        if (text !== undefined) {
          output.write(`${prompt}${text}\n`)
          return Effect.succeed<Typed>({ _tag: "Line", text })
        }
        return ended ? Effect.succeed<Typed>({ _tag: "End" }) : read(prompt, true)
      }),
    question: (prompt) => read(prompt, false)
  }
}
