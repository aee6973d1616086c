/**
 * Takes credentials out of text before it is cut, logged or shown.
 *
 * The order matters: cutting first can leave half of a secret that no pattern
 * recognises.
 */

/** Returns the text without its credentials. Applying it twice changes nothing more. */
export type Redactor = (text: string) => string

export const mark = "[REDACTED]"

interface Pattern {
  readonly expression: RegExp
  readonly replacement: string
}

/**
 * Rather too much than too little. Known gaps: a bare JSON Web Token without a
 * word before it is recognised only by its `eyJ` beginning; a value after a
 * keyword stops at white space or a quote.
 */
const patterns: ReadonlyArray<Pattern> = [
  {
    expression: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
    replacement: mark
  },
  { expression: /\bsgnl:\/\/linkdevice\?\S+/g, replacement: mark },
  {
    expression:
      /((?:api[_-]?key|access[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|auth[_-]?token|oauth[_-]?token|access[_-]?token|refresh[_-]?token|token|password|passwd|pwd|credentials?|authorization|x-api-key)["']?\s*[:=]\s*["']?)((?:(?:bearer|basic|token)\s+)?)(?!\[REDACTED\])[^\s"',;}]+/gi,
    replacement: `$1$2${mark}`
  },
  { expression: /\bgh[pousr]_[A-Za-z0-9]{16,}/g, replacement: mark },
  { expression: /\bgithub_pat_[A-Za-z0-9_]{16,}/g, replacement: mark },
  { expression: /\bsk-[A-Za-z0-9_-]{8,}/g, replacement: mark },
  { expression: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, replacement: mark },
  { expression: /\bAIza[A-Za-z0-9_-]{30,}/g, replacement: mark },
  { expression: /\bxox[abposr]-[A-Za-z0-9-]{8,}/g, replacement: mark },
  { expression: /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+/g, replacement: mark },
  { expression: /\b([a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:)(?!\[REDACTED\])[^\s/@]+(@)/gi, replacement: `$1${mark}$2` },
  { expression: /\b(bearer\s+)(?!\[REDACTED\])[A-Za-z0-9._~+/=-]{12,}/gi, replacement: `$1${mark}` }
]

/** Recognises the usual shapes of credentials. */
export const shapes: Redactor = (text) =>
  patterns.reduce((result, { expression, replacement }) => result.replace(expression, replacement), text)

/** Removes the given values wherever they stand, then the usual shapes. Values under 6 characters are left alone. */
export const withSecrets = (secrets: ReadonlyArray<string>): Redactor => {
  const known = secrets.filter((secret) => secret.length >= 6).sort((a, b) => b.length - a.length)
  return (text) => shapes(known.reduce((result, secret) => result.replaceAll(secret, mark), text))
}

const secretName = /(?:key|token|secret|password|passwd|credential|auth)/i

/** The values of an environment that are likely credentials, by their names. */
export const secretsOf = (env: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(env).flatMap(([name, value]) => (secretName.test(name) && value !== "" ? [value] : []))

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
    if (bytes > maxBytes) break
    start -= width
  }
  return text.slice(start)
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
