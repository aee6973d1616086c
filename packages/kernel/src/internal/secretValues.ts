/**
 * The texts by which given secrets are found again.
 */

/** Shorter values are left alone: they would be found everywhere. */
const minSecretLength = 6

/** A part of a document is taken for a secret from 16 characters on: shorter ones are words and dates. */
const minPartLength = 16

/** The long texts of a secret that is a JSON document, such as a file of tokens. */
const partsOf = (secret: string): ReadonlyArray<string> => {
  if (!/^\s*[[{]/.test(secret)) return []
  const texts = (value: unknown): ReadonlyArray<string> =>
    typeof value === "string" ? [value] : typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : []
  try {
    return texts(JSON.parse(secret)).filter((text) => text.length >= minPartLength)
  } catch {
    // Not JSON: it is a secret as a whole.
    return []
  }
}

/**
 * The texts to look for, the longest first: each secret as it is and as JSON
 * writes it; of one that is itself a JSON document also its long texts.
 */
export const known = (secrets: ReadonlyArray<string>, mark: string): ReadonlyArray<string> => {
  const written = secrets.flatMap((secret) => [secret, ...partsOf(secret)]).flatMap((secret) => [
    secret,
    JSON.stringify(secret).slice(1, -1)
  ])
  return [...new Set(written)]
    // A part of the mark itself would be found in every mark.
    .filter((secret) => secret.length >= minSecretLength && !mark.includes(secret))
    .sort((a, b) => b.length - a.length)
}

/** Removes secrets from a text that comes in pieces. */
export interface Sieve {
  /** What may be told by now: an end that may be the beginning of a secret is held until the next piece tells. */
  readonly push: (piece: string) => string
  /** The rest, when nothing follows. */
  readonly end: () => string
}

/** Makes a sieve for one text; `texts` are those of {@link known}. */
export const sieve = (texts: ReadonlyArray<string>, mark: string): Sieve => {
  const byFirst = new Map<string, Array<string>>()
  for (const text of texts) byFirst.set(text[0]!, [...(byFirst.get(text[0]!) ?? []), text])
  let held = ""

  const sift = (text: string, isLast: boolean): string => {
    let told = ""
    let from = 0
    for (let at = 0; at < text.length;) {
      const candidates = byFirst.get(text[at]!)
      const couldFollow = !isLast && candidates !== undefined
        && candidates.some((secret) => secret.length > text.length - at && secret.startsWith(text.slice(at)))
      if (couldFollow) {
        held = text.slice(at)
        return told + text.slice(from, at)
      }
      const found = candidates?.find((secret) => text.startsWith(secret, at))
      if (found === undefined) at++
      else {
        told += text.slice(from, at) + mark
        at += found.length
        from = at
      }
    }
    held = ""
    return told + text.slice(from)
  }

  return {
    push: (piece) => sift(held + piece, false),
    end: () => sift(held, true)
  }
}
