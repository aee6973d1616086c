/**
 * One line of a process's standard output, as bytes allow it to be read.
 *
 * A line ends at LF (byte 10) and nowhere else: CR, NUL, U+2028 and every other
 * character belong to the text. The LF itself is not part of a line. Lines are
 * in the order they were written; none is dropped.
 */

/** A line that is valid UTF-8. Encoding `text` again gives the same bytes. */
export interface Text {
  readonly _tag: "Text"
  readonly text: string
  /** Length of the line in bytes, without its LF. */
  readonly byteLength: number
  /** Whether an LF ended the line; `false` only for the rest at the end of the output. */
  readonly terminated: boolean
}

/** A line longer than the bound. It was read to its end and not kept, except for its beginning. */
export interface Oversize {
  readonly _tag: "Oversize"
  /** Length of the whole line in bytes, without its LF. */
  readonly bytesTotal: number
  /** The first bytes of the line; may end within a character. */
  readonly head: Uint8Array
  readonly terminated: boolean
}

/** A line that is not UTF-8, with its bytes as they were written. */
export interface InvalidUtf8 {
  readonly _tag: "InvalidUtf8"
  readonly bytes: Uint8Array
  /** The bytes read as UTF-8 with U+FFFD in place of what is none: for people, not for parsing. */
  readonly lossyText: string
  readonly terminated: boolean
}

export type Line = Text | Oversize | InvalidUtf8
