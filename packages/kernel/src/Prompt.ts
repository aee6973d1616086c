/**
 * What one turn is asked: text, passed to the harness byte for byte.
 */
export interface Prompt {
  readonly text: string
  /** Who wrote it, such as `user`. */
  readonly source: string
}

export const fromText = (text: string, source = "user"): Prompt => ({ text, source })
