/**
 * Colours, or none.
 */

export type Tone = "dim" | "good" | "bad" | "warn" | "bold"

export interface Style {
  readonly paint: (tone: Tone, text: string) => string
}

const codes: Readonly<Record<Tone, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  bad: [31, 39],
  good: [32, 39],
  warn: [33, 39]
}

export const plain: Style = { paint: (_tone, text) => text }

export const coloured: Style = {
  paint: (tone, text) => `\u001b[${codes[tone][0]}m${text}\u001b[${codes[tone][1]}m`
}

/** Colours where a terminal shows them and nobody asked for none (https://no-color.org). */
export const choose = (isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): Style =>
  isTerminal && !environment["NO_COLOR"] && environment["TERM"] !== "dumb" ? coloured : plain
