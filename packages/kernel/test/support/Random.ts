/** A small generator of random numbers that a seed repeats (mulberry32). */
export interface Random {
  /** From 0 up to, not including, 1. */
  readonly next: () => number
  /** A whole number from 0 up to, not including, `limit`. */
  readonly below: (limit: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(items: readonly [A, ...ReadonlyArray<A>]) => A
}

export const make = (seed: number): Random => {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)] ?? items[0]
  }
}
