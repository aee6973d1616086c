/**
 * What a benchmark is: it does its work, holds the outcome to what is right, and only then gives
 * figures. Wrong output is a failure, however fast.
 */
import * as Statistics from "./Statistics.ts"

export interface Context {
  /** Few and short rounds: to see that everything works, not to quote a figure. */
  readonly quick: boolean
  /** The folder of the bundled command, `bin.js` among its files. */
  readonly bundle: string
  readonly say: (text: string) => void
  /**
   * Does one round. Where others were at work meanwhile it waits for them and does the
   * round again, if it was asked to wait and has not waited too long already; what the
   * disturbed round brought is dropped unseen.
   */
  readonly undisturbed: <A>(round: () => Promise<A>) => Promise<A>
}

export interface Goal {
  readonly kind: "at most" | "at least"
  readonly value: number
}

export interface Figure {
  readonly name: string
  readonly unit: string
  readonly value: Statistics.Spread
  readonly goal?: Goal
}

export interface Report {
  readonly figures: ReadonlyArray<Figure>
  /** Every single measurement, by what it is of. */
  readonly samples: Readonly<Record<string, unknown>>
  /** How many outcomes were held to what they must be. */
  readonly checks: number
  /** What could not be measured here, and why. */
  readonly absent?: ReadonlyArray<string>
}

export interface Benchmark {
  readonly name: string
  readonly summary: string
  /** Whether it is one of the store of sessions, which are chosen together by `store`. */
  readonly isOfStore?: boolean
  /** The other programs that it needs, installed before. */
  readonly needs: ReadonlyArray<"real" | "peers">
  readonly run: (context: Context) => Promise<Report>
}

/** The output is not what it must be: there is no figure. */
export class Invalid extends Error {}

/** Counts checks; the first that does not hold ends the benchmark. */
export const checker = () => {
  let count = 0
  return {
    count: () => count,
    equal: (what: string, found: unknown, wanted: unknown): void => {
      count++
      if (JSON.stringify(found) !== JSON.stringify(wanted)) {
        throw new Invalid(`${what}: ${JSON.stringify(found)?.slice(0, 500)} instead of ${JSON.stringify(wanted)?.slice(0, 500)}`)
      }
    }
  }
}

export const figure = (name: string, unit: string, samples: ReadonlyArray<number>, goal?: Goal): Figure => ({
  name,
  unit,
  value: Statistics.spread(samples),
  ...(goal === undefined ? {} : { goal })
})

/** Whether a goal was reached by the median. */
export const isMet = ({ goal, value }: Figure): boolean | undefined =>
  goal === undefined ? undefined : goal.kind === "at most" ? value.median <= goal.value : value.median >= goal.value

/** Four digits that count, without a string of noughts. */
export const number = (value: number): string =>
  !Number.isFinite(value) ? String(value)
    : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en").replaceAll(",", " ")
    : value === 0 ? "0"
    : String(Number(value.toPrecision(3)))

export const toMarkdown = (figures: ReadonlyArray<Figure>): string =>
  [
    "| what | median | least | most | n | unit | goal |",
    "|---|---|---|---|---|---|---|",
    ...figures.map((one) => {
      const { goal, name, unit, value } = one
      const met = isMet(one)
      const wanted = goal === undefined ? "" : `${goal.kind} ${number(goal.value)}: ${met === true ? "met" : "missed"}`
      return `| ${name} | ${number(value.median)} | ${number(value.min)} | ${number(value.max)} | ${value.n} | ${unit} | ${wanted} |`
    })
  ].join("\n")
