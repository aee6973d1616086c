/**
 * `turnpike sessions explain`: why a turn ended as it did.
 */
import { Printable, Style } from "@turnpike/channel-terminal"
import { type InboxEntry, type SessionEvent, Verdict } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Given, isOn, quote } from "../CommandLine.ts"
import { refuse, type Refusal } from "../Refusal.ts"
import * as Explanation from "./Explanation.ts"
import * as Moment from "./Moment.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"
import * as TurnFacts from "./TurnFacts.ts"

const numberOf = (asked: string | undefined): Effect.Effect<number | undefined, Refusal> => {
  if (asked === undefined) return Effect.undefined
  const number = /^[0-9]+$/.test(asked) ? Number(asked) : NaN
  return Number.isSafeInteger(number) && number > 0
    ? Effect.succeed(number)
    : Effect.fail(refuse("USAGE", `TURN is ${quote(asked)}; turns are counted from 1`, {
      remedy: "Give a turn's number, or leave it out for the last one; `turnpike sessions show ID` lists them."
    }))
}

interface Read {
  readonly facts: TurnFacts.TurnFacts | undefined
  /** How many turns the log has, as far as it was read. */
  readonly turns: number
}

/** Reads the turn of a number, or the last one; no further than it has to. */
const read = ({ id, store }: Sessions.Found, wanted: number | undefined): Effect.Effect<Read, SessionStore.SessionStoreError> =>
  Effect.suspend(() => {
    let gathering: TurnFacts.Gathering | undefined
    let turns = 0
    const add = (event: SessionEvent.SessionEvent) => {
      if (event.type !== "turn/start") return gathering?.add(event)
      turns = event.data.turn
      gathering = wanted === undefined || wanted === turns ? TurnFacts.make(event) : undefined
    }
    return Stream.runForEachArray(
      Stream.takeUntil(store.read(id, -1), (event) => event.type === "turn/end" && event.data.turn === wanted),
      (events) => Effect.sync(() => events.forEach(add))
    ).pipe(Effect.map(() => ({ facts: gathering?.facts(), turns })))
  })

interface Looked extends Read {
  /** Who runs the turn that has no end. */
  readonly holder: SessionStore.Holder | undefined
}

const look = (found: Sessions.Found, wanted: number | undefined): Effect.Effect<Looked, Refusal | SessionStore.SessionStoreError> =>
  Effect.gen(function*() {
    const first = yield* read(found, wanted)
    if (first.facts === undefined || first.facts.end !== undefined) return { ...first, holder: undefined }
    const holder = yield* Sessions.holderOf(found)
    // Where nobody holds it by now, whoever did may have ended the turn in between.
    return holder === undefined ? { ...(yield* read(found, wanted)), holder } : { ...first, holder }
  })

/** Which receipts repeat one that the turn had claimed. */
const repeatsOf = ({ id, store }: Sessions.Found, claimed: ReadonlyArray<InboxEntry.ReceiptId>) =>
  Effect.gen(function*() {
    const asked = new Set(claimed)
    const repeats = new Map<InboxEntry.ReceiptId, { readonly id: InboxEntry.ReceiptId; readonly waits: boolean }>()
    if (asked.size === 0) return repeats
    const pending = yield* store.pending(id)
    const waiting = new Set([...pending.nextTurn, ...pending.nextStep].map((receipt) => receipt.id))
    yield* Stream.runForEach(store.inbox(id), (entry) =>
      Effect.sync(() => {
        if (entry.type === "received" && entry.retry_of !== undefined && asked.has(entry.retry_of)) {
          repeats.set(entry.retry_of, { id: entry.id, waits: waiting.has(entry.id) })
        }
      }))
    return repeats
  })

const toJson = (sessionId: string, { ended, evidence, next, started, state, summary, trigger, turn, verdict }: Explanation.Explanation) => ({
  session_id: sessionId,
  turn,
  state,
  trigger,
  started,
  ended: ended ?? null,
  verdict: verdict ?? null,
  success: verdict === undefined ? null : Verdict.consequences(verdict).success,
  summary,
  evidence,
  what_to_do: next
})

const text = ({ evidence, next, started, state, summary, verdict }: Explanation.Explanation, style: Style.Style): string => {
  const success = verdict !== undefined && Verdict.consequences(verdict).success
  const columns = Math.max(1, ...evidence.map(({ seq }) => String(seq ?? "").length))
  return [
    style.paint(success ? "good" : state === "ended" ? "bad" : "warn", `${success ? "✓" : state === "ended" ? "✗" : "…"} ${Printable.printable(summary)}`),
    style.paint("dim", `  begun ${Moment.format(started)}`),
    ...evidence.map(({ seq, text }) => `  ${style.paint("dim", String(seq ?? "").padStart(columns))}  ${Printable.printable(text)}`),
    `→ ${Printable.printable(next)}`,
    ""
  ].join("\n")
}

const command = (given: Given, [asked = "", turn]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const wanted = yield* numberOf(turn)
    const found = yield* Sessions.find({ command: "sessions explain", given }, asked)
    const { facts, holder, turns } = yield* look(found, wanted)
    if (facts === undefined) {
      return yield* refuse("USAGE", turns === 0 ? `session ${found.id} has no turn yet` : `session ${found.id} has no turn ${wanted}`, {
        remedy: turns === 0 ? "Begin one with `turnpike run --session` or `turnpike chat --session`." : `Give a turn from 1 to ${turns}.`
      })
    }
    const explanation = Explanation.make(facts, {
      sessionId: found.id,
      harness: found.header.harness,
      holder,
      repeats: yield* repeatsOf(found, facts.claimed)
    })
    yield* SessionsProgram.write(
      isOn(given, "json")
        ? `${JSON.stringify(toJson(found.id, explanation), undefined, 2)}\n`
        : text(explanation, Style.choose(process.stdout.isTTY === true, process.env))
    )
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
