/**
 * Why a turn ended as it did, in sentences, from what its log shows.
 *
 * The verdict first, then the evidence, then what to do. It judges nothing anew:
 * what the log does not say is not said.
 */
import { Printable, TurnText } from "@turnpike/channel-terminal"
import { type InboxEntry, type SessionEvent, Verdict } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as TurnFacts from "./TurnFacts.ts"

/** What a sentence is about. */
export type EvidenceKind =
  | "beginning"
  | "prompt"
  | "harness"
  | "work"
  | "tool_failed"
  | "tool_unfinished"
  | "denial"
  | "retry"
  | "answer"
  | "notice"
  | "error"
  | "stop"
  | "recovery"
  | "usage"

export interface Evidence {
  readonly kind: EvidenceKind
  /** One line, as the end of no other sentence; without its full stop. */
  readonly text: string
  /** The event that shows it, where it is one. */
  readonly seq?: number
}

export interface Explanation {
  readonly turn: number
  readonly trigger: SessionEvent.Trigger
  readonly state: "ended" | "running" | "left_open"
  /** Absent where the turn has no end. */
  readonly verdict: Verdict.Verdict | undefined
  readonly started: number
  readonly ended: number | undefined
  readonly summary: string
  readonly evidence: ReadonlyArray<Evidence>
  /** What to do, as sentences. */
  readonly next: string
}

/** What the turn's own events do not say. */
export interface Surroundings {
  readonly sessionId: string
  readonly harness: string
  /** Who holds the session now. A turn without an end runs there, and is left over otherwise. */
  readonly holder: SessionStore.Holder | undefined
  /** Receipts that repeat one that the turn had claimed, by that one's id, and whether they wait. */
  readonly repeats: ReadonlyMap<InboxEntry.ReceiptId, { readonly id: InboxEntry.ReceiptId; readonly waits: boolean }>
}

/** A name as a part of a sentence. */
const oneLine = (name: string): string => Printable.oneLine(name, 80)

const times = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

const seconds = (millis: number): string => TurnText.duration(Math.max(0, millis))

const stops: Readonly<Record<Verdict.AbortCause, string>> = {
  user: "somebody interrupted it, with Ctrl-C or a request to cancel",
  parent: "a termination signal, or the program that runs Turnpike, ended it",
  hook: "a plugin, or the harness by itself, broke it off",
  disposed: "its session was closed while it ran",
  timeout: "it reached the caller's time limit",
  silence: "the harness was silent for longer than the caller allows",
  budget: "it used up the caller's budget",
  policy_violation: "the harness broke a limit that was set for it",
  channel_lost: "the channel that it needed went away"
}

const isEmpty = (facts: TurnFacts.TurnFacts): boolean => facts.prompts + facts.steering + facts.context.count === 0 && facts.steps === 0

const ofVerdict = (facts: TurnFacts.TurnFacts, verdict: Verdict.Verdict, harness: string): string => {
  const turn = `turn ${facts.turn}`
  switch (verdict.type) {
    case "completed":
      if (facts.trigger.kind === "injection") return `${turn} put a text into the session; no model was asked`
      if (isEmpty(facts)) return `${turn} ended without asking ${harness}: nothing of what it was begun for was left in the inbox`
      return facts.trigger.kind === "background"
        ? `${turn} completed: ${harness} had gone on working by itself, and came to an end`
        : `${turn} completed: ${harness} ended it by itself, without an error`
    case "max-tokens":
      return `${turn} did not come to its end: the answer was cut at the model's output limit`
    case "max-turns":
      return `${turn} did not come to its end: ${harness} reached its limit of model calls`
    case "refusal":
      return `${turn} ended without success: the model refused`
    case "blocked":
      return `${turn} ended before it began: its prompt was rejected by ${verdict.by === "" ? "a policy" : TurnFacts.brief(verdict.by)}, and reached no model`
    case "aborted":
      return `${turn} was stopped: ${stops[verdict.cause]}`
    case "error":
      return `${turn} failed: ${verdict.error.code}`
    case "interrupted":
      return verdict.not_started === true
        ? `${turn} was cut off by a crash before anything of it left for ${harness}`
        : `${turn} was cut off by a crash`
  }
}

const call = ({ input, name }: TurnFacts.Tool): string => input === "" ? name : `${name} (${input})`

/** The first few, each a sentence, and one more that counts the rest. */
const each = <A>(
  kind: EvidenceKind,
  { count, first }: TurnFacts.Some<A>,
  sentence: (one: A) => { readonly text: string; readonly seq?: number },
  rest: string
): ReadonlyArray<Evidence> => [
  ...first.map((one): Evidence => ({ kind, ...sentence(one) })),
  ...(count > first.length ? [{ kind, text: `and ${count - first.length} more ${rest}` }] : [])
]

const beginning = ({ firstSeq, trigger }: TurnFacts.TurnFacts): Evidence => {
  const by = "source" in trigger && trigger.source !== "user" ? ` from ${TurnFacts.brief(trigger.source)}` : ""
  const why = {
    message: `a message${by} that was waiting began it`,
    injection: `it was begun to put a text${by} into the session`,
    continuation: "it went on with what an earlier turn had left waiting",
    background: "the harness went on working after its turn had ended, which began it"
  }[trigger.kind]
  return { kind: "beginning", seq: firstSeq, text: why }
}

const prompt = (facts: TurnFacts.TurnFacts): ReadonlyArray<Evidence> => [
  ...(facts.prompt === undefined ? [] : [{ kind: "prompt" as const, seq: facts.prompt.seq, text: `it was asked: “${facts.prompt.text}”` }]),
  ...(facts.steering === 0 ? [] : [{ kind: "prompt" as const, text: `${times(facts.steering, "prompt")} came while it ran and ${facts.steering === 1 ? "was" : "were"} taken into it` }]),
  ...each("prompt", facts.context, ({ seq, text }) => ({ seq, text: `it was told: “${text}”` }), "texts were put in")
]

const harness = (facts: TurnFacts.TurnFacts, name: string): ReadonlyArray<Evidence> => {
  const { bound, end } = facts
  if (bound !== undefined) {
    const { harness_version, model, resumed } = bound.data
    const details = TurnFacts.brief([harness_version, model].filter((detail) => detail !== undefined && detail !== "").join(", "))
    return [{
      kind: "harness",
      seq: bound.seq,
      text: `${name}${details === "" ? "" : ` (${details})`} ${resumed ? "went on with" : "began"} its session ${bound.text}`
    }]
  }
  if (facts.lastHeard !== undefined || facts.trigger.kind === "injection" || isEmpty(facts) || end?.verdict.type === "blocked") return []
  return [{ kind: "harness", text: `nothing was heard of ${name}` }]
}

const maxNames = 8

const work = (facts: TurnFacts.TurnFacts): ReadonlyArray<Evidence> => {
  const all = [...facts.calls.values()].reduce((sum, count) => sum + count, 0)
  if (all === 0) return facts.steps > 1 ? [{ kind: "work", text: `${times(facts.steps, "model call")}, and no tool` }] : []
  const names = [...facts.calls].slice(0, maxNames).map(([name, count]) => count === 1 ? name : `${name} × ${count}`)
  const more = facts.calls.size > maxNames ? ` and ${facts.calls.size - maxNames} others` : ""
  return [{
    kind: "work",
    text: `${facts.steps > 1 ? `${times(facts.steps, "model call")}; ` : ""}${times(all, "tool call")}: ${names.join(", ")}${more}`
  }]
}

const unfinished: Readonly<Record<TurnFacts.Unfinished["code"], string>> = {
  TOOL_NOT_STARTED: "had certainly not begun when the turn ended; it can be run again",
  TOOL_OUTCOME_UNKNOWN: "may have done something: the turn ended before anybody saw it end",
  ABORTED_BEFORE_DISPATCH: "did not run: the turn was stopped before its turn came"
}

const tools = (facts: TurnFacts.TurnFacts): ReadonlyArray<Evidence> => [
  ...each("tool_failed", facts.failed, (tool) => ({ seq: tool.seq, text: `${call(tool)} failed${tool.output === "" ? "" : `: ${tool.output}`}` }), "calls failed"),
  ...each("denial", facts.denied, (denial) => ({ seq: denial.seq, text: deniedText(denial) }), "were not allowed"),
  ...each("tool_unfinished", facts.unfinished, (tool) => ({ seq: tool.seq, text: `${call(tool)} ${unfinished[tool.code]}` }), "calls have no result"),
  ...(facts.end === undefined ? each("tool_unfinished", facts.running, (tool) => ({ seq: tool.seq, text: `${call(tool)} was called and has no result yet` }), "calls have no result yet") : [])
]

const deniedText = (denial: TurnFacts.Denial): string => {
  const why = denial.reason === undefined ? "" : `: ${denial.reason}`
  return denial.decision === "cancelled"
    ? `nobody had answered whether ${call(denial)} may run when the turn ended${why}`
    : `${call(denial)} was not allowed${denial.by === undefined || denial.by === "" ? "" : ` (${denial.by})`}${why}`
}

const answer = (facts: TurnFacts.TurnFacts, name: string): ReadonlyArray<Evidence> => {
  const said: ReadonlyArray<Evidence> = facts.answer === undefined
    ? []
    : [{ kind: "answer", seq: facts.answer.seq, text: `${name} had ${facts.answer.isPartial ? "begun to answer" : "said"}: “${facts.answer.text}”` }]
  if (facts.hasLoosePieces) return [...said, { kind: "answer", text: "an answer had begun and was not brought to its end" }]
  return said.length > 0 || facts.lastHeard === undefined ? said : [{ kind: "answer", text: `${name} had given no answer` }]
}

/** Who stopped it and how, and what recovery made of it. */
const ending = (facts: TurnFacts.TurnFacts, { repeats }: Surroundings, name: string): ReadonlyArray<Evidence> => {
  const { end } = facts
  if (end === undefined) return []
  const { seq, time, verdict } = end
  const lasted = `it had run for ${seconds(time - facts.started)}`
  switch (verdict.type) {
    case "aborted":
      return [{
        kind: "stop",
        seq,
        text: `${
          verdict.mode === "graceful"
            ? `${name} was asked to end the turn and did, so that its session is whole`
            : "the turn was cut off, and what ran in it was ended"
        }; ${lasted}${facts.lastHeard === undefined ? "" : `, and ${name} was last heard of ${seconds(time - facts.lastHeard)} before that`}`
      }]
    case "error":
      return facts.lastHeard === undefined ? [] : [{ kind: "stop", seq, text: `${lasted}; ${name} was last heard of ${seconds(time - facts.lastHeard)} before that` }]
    case "interrupted": {
      const again = facts.claimed.flatMap((id): ReadonlyArray<Evidence> => {
        const repeat = repeats.get(id)
        return repeat === undefined
          ? []
          : [{ kind: "recovery", text: `receipt ${oneLine(id)}, which it had taken, was put back as receipt ${oneLine(repeat.id)}${repeat.waits ? ", which waits" : ""}` }]
      })
      return [
        { kind: "recovery", seq, text: "whoever opened the session next closed the turn" },
        ...again.slice(0, 5),
        ...(again.length > 5 ? [{ kind: "recovery" as const, text: `and ${again.length - 5} more receipts were put back` }] : [])
      ]
    }
    default:
      return []
  }
}

const errors = (facts: TurnFacts.TurnFacts): ReadonlyArray<Evidence> => {
  const verdict = facts.end?.verdict
  const told: ReadonlyArray<Evidence> = verdict?.type !== "error"
    ? []
    : [{ kind: "error", ...(facts.end === undefined ? {} : { seq: facts.end.seq }), text: `${verdict.error.code}: ${TurnFacts.brief(verdict.error.message)}` }]
  // The last thing before such an end repeats it.
  const isRepeated = ({ code }: { readonly code: string }) => verdict?.type === "error" && verdict.error.code === code
  const others = facts.errors.first.filter((error) => !isRepeated(error))
  return [
    ...each("error", { first: others, count: facts.errors.count - (facts.errors.first.length - others.length) }, ({ code, seq, text }) => ({ seq, text: `${code}: ${text}` }), "errors"),
    ...told
  ]
}

const evidenceOf = (facts: TurnFacts.TurnFacts, surroundings: Surroundings): ReadonlyArray<Evidence> => {
  const name = surroundings.harness
  return [
    beginning(facts),
    ...prompt(facts),
    ...harness(facts, name),
    ...work(facts),
    ...tools(facts),
    ...each("retry", facts.retries, ({ seq, text }) => ({ seq, text: `a model request was sent again: ${text}` }), "retries"),
    ...each("notice", facts.notices, ({ kind, seq, text }) => ({ seq, text: `notice ${kind}: ${text}` }), "notices"),
    ...answer(facts, name),
    ...errors(facts),
    ...ending(facts, surroundings, name),
    ...(facts.usage === undefined ? [] : [{ kind: "usage" as const, text: `it used ${TurnText.usage(facts.usage)}` }])
  ]
}

const waiting = ({ repeats }: Surroundings, facts: TurnFacts.TurnFacts): string | undefined =>
  facts.claimed.map((id) => repeats.get(id)).find((repeat) => repeat?.waits === true)?.id

const nextOf = (facts: TurnFacts.TurnFacts, surroundings: Surroundings): string => {
  const { holder, sessionId } = surroundings
  const goOn = `\`turnpike chat --session ${sessionId}\``
  const verdict = facts.end?.verdict
  if (verdict === undefined) {
    return holder === undefined
      ? `\`turnpike sessions repair ${sessionId}\` says what opening the session would put in order. The next run or chat does it by itself.`
      : `Wait for it, or watch it: \`turnpike sessions log ${sessionId} --follow --after ${facts.lastSeq}\`.`
  }
  const unknown = facts.unfinished.first.find(({ code }) => code === "TOOL_OUTCOME_UNKNOWN")
  const look = unknown === undefined ? "" : `Look at what ${call(unknown)} may have done before it is run again. `
  switch (verdict.type) {
    case "completed":
      return facts.denied.count === 0 ? "Nothing: it succeeded." : "If it should have had what was not allowed, name the tool with --allow-tool."
    case "interrupted": {
      const receipt = waiting(surroundings, facts)
      return receipt === undefined
        ? `${look}Go on with ${goOn}: what the turn did until then is in its log.`
        : `${look}Its prompt waits as receipt ${oneLine(receipt)}: ${goOn} takes it.`
    }
    default:
      return `${look}${TurnFacts.brief(Verdict.failureOf(verdict)?.remedy ?? "")}`
  }
}

/** Explains a turn. */
export const make = (facts: TurnFacts.TurnFacts, given: Surroundings): Explanation => {
  const { end } = facts
  const name = oneLine(given.harness)
  const holder = given.holder === undefined ? undefined : { ...given.holder, name: TurnFacts.brief(given.holder.name) }
  const surroundings: Surroundings = { ...given, harness: name, holder }
  return {
    turn: facts.turn,
    trigger: facts.trigger,
    state: end !== undefined ? "ended" : holder === undefined ? "left_open" : "running",
    verdict: end?.verdict,
    started: facts.started,
    ended: end?.time,
    summary: end !== undefined
      ? ofVerdict(facts, end.verdict, name)
      : holder === undefined
      ? `turn ${facts.turn} has no end: a crash left it open, and nobody has opened the session since`
      : `turn ${facts.turn} is still running, in ${holder.name}`,
    evidence: evidenceOf(facts, surroundings),
    next: nextOf(facts, surroundings)
  }
}
