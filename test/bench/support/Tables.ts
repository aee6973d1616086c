/** What tables of figures are made of. */
import type { Figure } from "./Benchmark.ts"
import * as Benchmark from "./Benchmark.ts"
import type { Machine } from "./Machine.ts"

export interface Results {
  readonly machine: Machine
  readonly reports: Readonly<Record<string, { readonly ok: boolean; readonly at: string; readonly quick: boolean; readonly figures: ReadonlyArray<Figure>; readonly checks: number; readonly others: { readonly mean: number; readonly most: number; readonly repeated: number } }>>
}

export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

/** The median, and the least and most of the rounds. */
export const cell = ({ unit, value }: Figure): string => {
  const { number } = Benchmark
  return `${number(value.median)} ${unit}${value.n === 1 ? "" : ` (${number(value.min)}–${number(value.max)})`}`
}

/** Finds the figure of a name in a benchmark. */
export type Read = (benchmark: string, name: string) => Figure

/** The figure of a name; a document that speaks of one that is not there is wrong. */
export const reader = (results: Results): Read => (benchmark: string, name: string): Figure => {
  const found = results.reports[benchmark]?.figures.find((one) => one.name === name)
  if (found === undefined) throw new Error(`the results have no figure "${name}" of ${benchmark}`)
  return found
}

export const word = (figure: Figure): string => Benchmark.isMet(figure) === true ? "met" : "**missed**"

/** A row of the table of goals. */
export const judging = (of: Read) => (benchmark: string, name: string, goal: string, called = name): ReadonlyArray<string> => {
  const figure = of(benchmark, name)
  return [called, goal, cell(figure), word(figure)]
}
