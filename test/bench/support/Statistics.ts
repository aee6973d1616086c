/** Figures of samples. */

/** The value below which this part of the samples lies, by the nearest rank; NaN of none. */
export const quantile = (samples: ReadonlyArray<number>, part: number): number => {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * part) - 1))] ?? Number.NaN
}

export const median = (samples: ReadonlyArray<number>): number => {
  const sorted = samples.toSorted((a, b) => a - b)
  const half = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[half]! : ((sorted[half - 1] ?? Number.NaN) + (sorted[half] ?? Number.NaN)) / 2
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly n: number
}

export const spread = (samples: ReadonlyArray<number>): Spread => ({
  median: median(samples),
  min: samples.reduce((least, one) => Math.min(least, one), Number.POSITIVE_INFINITY),
  max: samples.reduce((most, one) => Math.max(most, one), Number.NEGATIVE_INFINITY),
  n: samples.length
})

/** By how much y grows where x grows by one, by least squares. */
export const slope = (points: ReadonlyArray<readonly [x: number, y: number]>): number => {
  const mean = (of: (point: readonly [number, number]) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length
  const x = mean(([first]) => first)
  const y = mean(([, second]) => second)
  const below = points.reduce((sum, [first]) => sum + (first - x) ** 2, 0)
  return below === 0 ? 0 : points.reduce((sum, [first, second]) => sum + (first - x) * (second - y), 0) / below
}
