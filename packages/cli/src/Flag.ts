/**
 * What a command takes, as data: the parser, the help and the suggestions read
 * the same table.
 */

export type Value =
  | { readonly kind: "switch" }
  /** `true` or `false`; the flag alone means true. */
  | { readonly kind: "boolean" }
  /** Any text but an empty one. `shown` is its name in the help, such as `FILE`. */
  | { readonly kind: "text"; readonly shown: string }
  | { readonly kind: "choice"; readonly choices: ReadonlyArray<string> }
  /** A number above 0. */
  | { readonly kind: "seconds" }
  /** `NAME=VALUE`. */
  | { readonly kind: "variable" }

export interface Flag {
  readonly name: string
  readonly value: Value
  readonly help: string
  readonly isRepeatable: boolean
  /** The field of the run specification that the flag sets, where it sets one. */
  readonly field?: string
}

export interface Positional {
  readonly name: string
  readonly help: string
  readonly isRequired: boolean
}

export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  readonly usage: ReadonlyArray<string>
  /** Paragraphs after the usage. */
  readonly about: ReadonlyArray<string>
  readonly positionals: ReadonlyArray<Positional>
  readonly flags: ReadonlyArray<Flag>
  readonly examples: ReadonlyArray<readonly [command: string, what: string]>
  /** Exit codes whose meaning for this command differs from the general table or adds to it. */
  readonly exits?: ReadonlyArray<readonly [code: string, meaning: string]>
}

interface Extra {
  readonly isRepeatable?: boolean
  readonly field?: string
}

const make = (name: string, value: Value, help: string, extra: Extra): Flag => ({
  name,
  value,
  help,
  isRepeatable: extra.isRepeatable ?? false,
  ...(extra.field === undefined ? {} : { field: extra.field })
})

export const toggle = (name: string, help: string, extra: Extra = {}): Flag => make(name, { kind: "switch" }, help, extra)
export const boolean = (name: string, help: string, extra: Extra = {}): Flag => make(name, { kind: "boolean" }, help, extra)
export const text = (name: string, shown: string, help: string, extra: Extra = {}): Flag =>
  make(name, { kind: "text", shown }, help, extra)
export const choice = (name: string, choices: ReadonlyArray<string>, help: string, extra: Extra = {}): Flag =>
  make(name, { kind: "choice", choices }, help, extra)
export const seconds = (name: string, help: string, extra: Extra = {}): Flag => make(name, { kind: "seconds" }, help, extra)
export const variable = (name: string, help: string, extra: Extra = {}): Flag => make(name, { kind: "variable" }, help, extra)

/** How a flag's value is shown, such as `FILE` or `wait|kill`; empty for a switch. */
export const shownValue = ({ value }: Flag): string => {
  switch (value.kind) {
    case "switch":
      return ""
    case "boolean":
      return "true|false"
    case "text":
      return value.shown
    case "choice":
      return value.choices.join("|")
    case "seconds":
      return "SECONDS"
    case "variable":
      return "NAME=VALUE"
  }
}
