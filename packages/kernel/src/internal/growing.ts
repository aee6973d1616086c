/**
 * A list that only grows, of which every earlier state stays readable.
 *
 * States share one array: each sees as much of it as it had. Adding to the newest
 * state costs the same however long the list is; adding to an older one copies.
 */
export interface Growing<A> {
  readonly length: number
  /** Holds more than `length` items where a later state was made of this one. */
  readonly shared: Array<A>
}

export const empty = <A>(): Growing<A> => ({ length: 0, shared: [] })

export const add = <A>(self: Growing<A>, item: A): Growing<A> => {
  const shared = self.shared.length === self.length ? self.shared : self.shared.slice(0, self.length)
  shared.push(item)
  return { length: shared.length, shared }
}

/** Puts an item in the place of those from `start` to before `end`. Copies the list. */
export const replace = <A>(self: Growing<A>, start: number, end: number, item: A): Growing<A> => {
  const shared = [...self.shared.slice(0, start), item, ...self.shared.slice(end, self.length)]
  return { length: shared.length, shared }
}

export const slice = <A>(self: Growing<A>, start: number, end: number = self.length): ReadonlyArray<A> =>
  self.shared.slice(start, Math.min(end, self.length))
