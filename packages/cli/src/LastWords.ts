/**
 * How a failure is told to a person, on standard error.
 *
 * Without dependencies, because a command line is refused before anything is
 * loaded. Texts have to be free of control characters.
 */

export interface Told {
  readonly code: string
  readonly message: string
  readonly remedy: string
}

/** Three lines: what happened, its stable code, what to do. */
export const format = ({ code, message, remedy }: Told): string =>
  `turnpike: ${message.trimEnd().replaceAll("\n", "\n  ")}\n  code: ${code}\n  what to do: ${remedy}\n`
