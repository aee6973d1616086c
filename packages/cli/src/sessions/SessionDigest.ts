/**
 * A session as a whole, in brief: what became of each turn, what it used, and under
 * which id its harness has it. A fold over its log.
 */
import type { SessionEvent, Usage, Verdict } from "@turnpike/contract"
import { HarnessBinding } from "@turnpike/kernel"
import { brief } from "./TurnFacts.ts"

export interface Turn {
  readonly turn: number
  readonly trigger: SessionEvent.Trigger
  /** The first words that it was asked, or else told; absent where there were none. */
  readonly prompt: string | undefined
  readonly firstSeq: number
  /** That of its end, or of the last event so far. */
  readonly lastSeq: number
  readonly started: number
  /** Absent where the turn has no end. */
  readonly end: { readonly time: number; readonly verdict: Verdict.Verdict } | undefined
  readonly usage: Usage.Usage | undefined
}

export interface SessionDigest {
  readonly turns: ReadonlyArray<Turn>
  /** `undefined` where the harness never named its session. */
  readonly binding: HarnessBinding.HarnessBinding | undefined
  /** What the harness said last of itself. */
  readonly version: string | undefined
  readonly model: string | undefined
}

export interface Gathering {
  readonly add: (event: SessionEvent.SessionEvent) => void
  readonly digest: () => SessionDigest
}

/** Begins with a log whose first so many events are those of the session that it was forked from. */
export const make = (forkedEvents: number): Gathering => {
  const turns: Array<Turn> = []
  let binding: HarnessBinding.HarnessBinding | undefined
  let version: string | undefined
  let model: string | undefined
  let current: { -readonly [K in keyof Turn]: Turn[K] } | undefined
  /** Whether the words of the current turn are what it was asked. */
  let isAsked = false

  const words = (text: string, asks: boolean) => {
    if (current === undefined || (current.prompt !== undefined && (isAsked || !asks))) return
    isAsked = asks
    current.prompt = brief(text)
  }

  return {
    add: (event) => {
      if (event.seq >= forkedEvents) binding = HarnessBinding.add(binding, event)
      if (event.type === "turn/start") {
        const { trigger, turn } = event.data
        current = { turn, trigger, prompt: undefined, firstSeq: event.seq, lastSeq: event.seq, started: event.time, end: undefined, usage: undefined }
        isAsked = false
        turns.push(current)
        return
      }
      if (current === undefined) return
      current.lastSeq = event.seq
      switch (event.type) {
        case "turn/end":
          current.end = { time: event.time, verdict: event.data.verdict }
          return
        case "user/message":
        case "steering/message":
          return words(event.data.text, true)
        case "context/message":
          return words(event.data.text, false)
        case "usage":
          current.usage = event.data.usage
          return
        case "session/bound":
          version = event.data.harness_version ?? version
          model = event.data.model ?? model
          return
        default:
          return
      }
    },
    digest: () => ({ turns: [...turns], binding, version, model })
  }
}

/** What turns used together, and how many of those that ran on a harness did not tell. */
export interface Total {
  readonly usage: Usage.Usage
  readonly untold: number
}

/** Sums up what is known. A figure that no turn has is unavailable; of the parts of a figure nothing is said. */
export const total = (turns: ReadonlyArray<Pick<Turn, "trigger" | "usage">>): Total => {
  const sum = (figures: ReadonlyArray<number | undefined>): number | undefined => {
    const known = figures.filter((figure) => figure !== undefined)
    return known.length === 0 ? undefined : known.reduce((all, figure) => all + figure, 0)
  }
  const all = turns.flatMap(({ usage }) => usage === undefined ? [] : [usage])
  const source = (part: "tokens" | "cost") => all.some((usage) => usage[part].source === "estimated") ? "estimated" : "reported"
  const input_tokens = sum(all.map(({ tokens }) => tokens.input_tokens))
  const output_tokens = sum(all.map(({ tokens }) => tokens.output_tokens))
  const usd = sum(all.map(({ cost }) => cost.usd))
  return {
    usage: {
      tokens: input_tokens === undefined && output_tokens === undefined
        ? { source: "unavailable" }
        : {
          source: source("tokens"),
          ...(input_tokens === undefined ? {} : { input_tokens }),
          ...(output_tokens === undefined ? {} : { output_tokens })
        },
      cost: usd === undefined ? { source: "unavailable" } : { source: source("cost"), usd }
    },
    untold: turns.filter(({ trigger, usage }) => usage === undefined && trigger.kind !== "injection").length
  }
}
