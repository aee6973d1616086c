/**
 * The word that somebody probably meant.
 */

/** Edits between two words: insertions, deletions, replacements, and swaps of neighbours, each counting 1. */
export const distance = (a: string, b: string): number => {
  let beforePrevious: ReadonlyArray<number> = []
  let previous: ReadonlyArray<number> = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforePrevious[j - 2] ?? 0) + 1)
      }
      row.push(least)
    }
    beforePrevious = previous
    previous = row
  }
  return previous[b.length] ?? 0
}

/** The nearest of the candidates, if one is near enough to be meant; the first of several. */
export const nearest = (word: string, candidates: ReadonlyArray<string>): string | undefined => {
  const asked = word.toLowerCase().slice(0, 64)
  if (asked === "") return undefined
  const extended = candidates.filter((candidate) => asked.length >= 3 && candidate.startsWith(asked))
  if (extended.length === 1) return extended[0]
  const far = Math.max(1, Math.floor(asked.length / 3))
  let best: { readonly candidate: string; readonly edits: number } | undefined
  for (const candidate of candidates) {
    const edits = distance(asked, candidate)
    if (edits <= far && (best === undefined || edits < best.edits)) best = { candidate, edits }
  }
  return best?.candidate
}
