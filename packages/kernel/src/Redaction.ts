/**
 * Takes credentials out of text before it is cut, logged or shown.
 *
 * The order matters: cutting first can leave half of a secret that no pattern
 * recognises.
 */
import type * as Schema from "effect/Schema"
import * as SecretValues from "./internal/secretValues.ts"

/** Returns the text without its credentials. Applying it twice changes nothing more. */
export type Redactor = (text: string) => string

export const mark = "[REDACTED]"

interface Pattern {
  readonly expression: RegExp
  readonly replacement: string
}

const keyword =
  "(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|auth[_-]?token|oauth[_-]?token|access[_-]?token|refresh[_-]?token|token|password|passwd|passphrase|pwd|credentials?|authorization|x-api-key)"

/** A value that is already taken out, whole: what follows the mark is where a value ends anyway. */
const done = "(?:(?:bearer|basic|token)\\s+)?\\[REDACTED\\](?=[\\s\"'\\\\,;}]|$)"

/**
 * Rather too much than too little. Known gaps: a bare JSON Web Token is
 * recognised only by its `eyJ` beginning; an unquoted value after a keyword
 * stops at white space, a comma or a semicolon.
 *
 * Every expression is linear in the length of the text: no two neighbouring
 * repetitions can share characters, and a match can begin only where the
 * character before it does not belong to it.
 */
const patterns: ReadonlyArray<Pattern> = [
  {
    expression:
      /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    replacement: mark
  },
  { expression: /\bsgnl:\/\/linkdevice\?\S+/g, replacement: mark },
  {
    expression: /(\b(?:set-)?cookie\\{0,8}["']?\s*:\s*\\{0,8}["']?)(?!\[REDACTED\](?:["'\\\r\n]|$))[^\s"'\\][^\r\n"'\\]*/gi,
    replacement: `$1${mark}`
  },
  {
    // A quoted value reaches to its closing quote.
    expression: new RegExp(`(${keyword}["']?\\s*[:=]\\s*(["']))(?!${done})(?:(?!\\2)[^\\n\\\\]|\\\\[^\\n])+`, "gi"),
    replacement: `$1${mark}`
  },
  {
    // The same with escaped quotes, as in JSON within JSON.
    expression: new RegExp(
      `(${keyword}(?:\\\\{1,8}["'])?\\s*[:=]\\s*\\\\{1,8}(["']))(?!${done})(?:(?!\\\\{1,8}\\2)[^\\n])+`,
      "gi"
    ),
    replacement: `$1${mark}`
  },
  {
    expression: new RegExp(
      `(${keyword}\\\\*["']?\\s*[:=]\\s*)(?!${done})((?:(?:bearer|basic|token)\\s+)?)(?!${done})[^\\s"'\\\\,;}]+`,
      "gi"
    ),
    replacement: `$1$2${mark}`
  },
  { expression: new RegExp(`(--${keyword}\\s+)(?!${done})(?!-)[^\\s"'\\\\,;}]+`, "gi"), replacement: `$1${mark}` },
  { expression: /(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{16,}/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{16,}/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])(?:sk-|[sr]k_(?:live|test)_)[A-Za-z0-9_-]{8,}/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])(?:glpat-|hf_|gsk_|xai-|pplx-|npm_|ya29\.)[A-Za-z0-9_-]{16,}/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])xox[abposr]-[A-Za-z0-9-]{8,}/g, replacement: mark },
  { expression: /(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{8,}/g, replacement: mark },
  {
    expression: /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+/g,
    replacement: mark
  },
  {
    expression: /(?<![a-z0-9])([a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"'\\]*:)(?!\[REDACTED\]@)[^\s/@"'\\]+(@)/gi,
    replacement: `$1${mark}$2`
  },
  { expression: /\b(bearer\s+)[A-Za-z0-9._~+/=-]{12,}/gi, replacement: `$1${mark}` }
]

/** Recognises the usual shapes of credentials. */
export const shapes: Redactor = (text) =>
  patterns.reduce((result, { expression, replacement }) => result.replace(expression, replacement), text)

/**
 * Removes the given values wherever they stand, as they are and as JSON writes
 * them; of a value that is itself a JSON document also its long texts. Values
 * under 6 characters are left alone.
 */
export const values = (secrets: ReadonlyArray<string>): Redactor => {
  const known = SecretValues.known(secrets, mark)
  return (text) => known.reduce((result, secret) => result.replaceAll(secret, mark), text)
}

/** Removes the given values wherever they stand, then the usual shapes. */
export const withSecrets = (secrets: ReadonlyArray<string>): Redactor => {
  const known = values(secrets)
  return (text) => shapes(known(text))
}

/** Redacts every string of a JSON value; names of fields stay. */
export const json = (value: Schema.Json, redact: Redactor): Schema.Json => {
  if (typeof value === "string") return redact(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((item: Schema.Json) => json(item, redact))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, json(item as Schema.Json, redact)]))
}

/** Without authors and keyboards: who wrote a commit stands in an environment more often than a secret does. */
const secretName =
  /key(?!board|map|sym)|token|secret|password|passwd|passphrase|credential|auth(?!or(?:s|_|$))|(?:^|_)(?:pass|pat)(?:_|$)|_pwd$/i

/** Names that hold one of those words and yet hold no secret: where something is, or how much of it. */
const plainName = /(?:_SOCK|_FILE|_PATH|_DIR|_TOKENS|XAUTHORITY)$/i

/** An address that holds a password. */
const addressWithPassword = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i

/** The values of an environment that are likely credentials: by their names, or as addresses with a password. */
export const secretsOf = (env: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(env).flatMap(([name, value]) => {
    const isNamed = secretName.test(name) && !plainName.test(name)
    return value !== "" && (isNamed || addressWithPassword.test(value)) ? [value] : []
  })

/** Bytes of one character in UTF-8; a lone surrogate is written as U+FFFD. */
const utf8Bytes = (codePoint: number): number =>
  codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4

/** The length of a text in UTF-8. */
export const byteLength = (text: string): number => {
  let bytes = 0
  for (const character of text) bytes += utf8Bytes(character.codePointAt(0) ?? 0)
  return bytes
}

/** The last characters of the text that take at most `maxBytes` in UTF-8; none is split. */
export const tail = (text: string, maxBytes: number): string => {
  let bytes = 0
  let start = text.length
  while (start > 0) {
    const low = text.charCodeAt(start - 1)
    const high = start > 1 ? text.charCodeAt(start - 2) : 0
    const pair = low >= 0xdc00 && low <= 0xdfff && high >= 0xd800 && high <= 0xdbff
    const width = pair ? 2 : 1
    bytes += pair ? 4 : utf8Bytes(low)
    // Also where the bound is not a number.
    if (!(bytes <= maxBytes)) break
    start -= width
  }
  return text.slice(start)
}

/** The first characters of the text, at most so many UTF-16 units; no code point is split. */
export const head = (text: string, maxUnits: number): string => {
  if (text.length <= maxUnits) return text
  const end = Math.max(0, Math.floor(maxUnits))
  const last = text.charCodeAt(end - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end)
}

/** The bound of an output's tail in an error: 2048 bytes. */
export const defaultTailBytes = 2048

/**
 * Describes a process that went away: what ended, its exit, how many bytes it
 * had written, and the end of them. Redacts the whole first and cuts second.
 */
export const failureTail = (options: {
  readonly what: string
  readonly exit: string
  readonly output: string
  readonly redact: Redactor
  readonly maxBytes?: number
}): string => {
  const length = byteLength(options.output)
  const end = tail(options.redact(options.output), options.maxBytes ?? defaultTailBytes)
  const head = `${options.what} ${options.exit} (${length} bytes of output)`
  return end.trim() === "" ? head : `${head}: ${end.trim()}`
}
