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
  /** A whole number, `least` or more. `shown` is its name in the help, such as `SEQ`. */
  | { readonly kind: "whole"; readonly shown: string; readonly least: number }
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
  /** Whether it takes all that follow; of the last one alone. */
  readonly isRepeatable?: boolean
}

export interface Command {
  /** The words after `turnpike`, such as `run` or `sessions log`. */
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
  /** The commands that stand behind this one's word. Where there are some it does nothing by itself, and takes no flags. */
  readonly commands?: ReadonlyArray<Command>
  /** Words that others have for it. They are not taken, but understood. */
  readonly synonyms?: ReadonlyArray<string>
}

/** The last of a command's words. */
export const wordOf = ({ name }: Command): string => name.slice(name.lastIndexOf(" ") + 1)

/** The commands that do something, those behind others included. */
export const runnable = (commands: ReadonlyArray<Command>): ReadonlyArray<Command> =>
  commands.flatMap((command) => command.commands === undefined ? [command] : runnable(command.commands))

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
export const whole = (name: string, shown: string, help: string, least = 0): Flag => make(name, { kind: "whole", shown, least }, help, {})
export const variable = (name: string, help: string, extra: Extra = {}): Flag => make(name, { kind: "variable" }, help, extra)

/** How a flag's value is shown, such as `FILE` or `wait|kill`; empty for a switch. */
export const shownValue = ({ value }: Flag): string => {
  switch (value.kind) {
    case "switch":
      return ""
    case "boolean":
      return "true|false"
    case "text":
    case "whole":
      return value.shown
    case "choice":
      return value.choices.join("|")
    case "seconds":
      return "SECONDS"
    case "variable":
      return "NAME=VALUE"
  }
}
