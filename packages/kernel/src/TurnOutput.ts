/**
 * What a turn produced, whole: the fold of its events.
 */
import { TurnEvent, Usage } from "@turnpike/contract"

export interface TurnOutput {
  /** The answer, byte for byte. */
  readonly text: string
  /** Exit code of the harness's process, where one ended with the turn. Any 32-bit integer. */
  readonly exitCode?: number
  /** The harness's own ending. Absent where the output was made from text alone. */
  readonly end?: TurnEvent.TurnEnd["data"]
  readonly usage: Usage.Usage
}

export const fromText = (text: string): TurnOutput => ({ text, usage: Usage.unavailable })

/** Returns the answer unchanged. */
export const text = (output: TurnOutput): string => output.text

/** Sets the exit code; the last one set counts. */
export const withExitCode = (output: TurnOutput, exitCode: number): TurnOutput => ({ ...output, exitCode })

/** The fold's beginning. */
export const empty: TurnOutput = fromText("")

/** Adds one event. Only `usage` and `harness/end` change the output. */
export const add = (output: TurnOutput, event: TurnEvent.TurnEvent): TurnOutput => {
  switch (event.type) {
    case "usage":
      return { ...output, usage: event.data.usage }
    case "harness/end":
      return {
        ...output,
        text: event.data.text,
        end: event.data,
        ...(event.data.exit_code === undefined ? {} : { exitCode: event.data.exit_code })
      }
    default:
      return output
  }
}
