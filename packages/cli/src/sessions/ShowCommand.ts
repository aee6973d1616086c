/**
 * `turnpike sessions show`: what a session is, how its turns ended, what waits in
 * it, and who holds it.
 */
import { Printable, Style, TurnText } from "@turnpike/channel-terminal"
import { type InboxEntry, Verdict } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Given, isOn, one } from "../CommandLine.ts"
import * as Moment from "./Moment.ts"
import * as SessionDigest from "./SessionDigest.ts"
import * as SessionList from "./SessionList.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"
import { brief } from "./TurnFacts.ts"

interface Shown {
  readonly summary: SessionStore.Summary
  readonly digest: SessionDigest.SessionDigest
  readonly pending: SessionStore.Pending
  /** The turns that are listed. */
  readonly turns: ReadonlyArray<SessionDigest.Turn>
}

const toJson = ({ digest, pending, summary, turns }: Shown) => {
  const { usage, untold } = SessionDigest.total(digest.turns)
  const { binding, model, version } = digest
  return {
    ...SessionList.toJson(summary),
    turns: turns.map(({ end, firstSeq, lastSeq, prompt, started, trigger, turn, usage }) => ({
      turn,
      trigger,
      ...(prompt === undefined ? {} : { prompt }),
      first_seq: firstSeq,
      last_seq: lastSeq,
      started,
      ended: end?.time ?? null,
      verdict: end?.verdict ?? null,
      ...(usage === undefined ? {} : { usage })
    })),
    turn_count: digest.turns.length,
    usage,
    turns_without_usage: untold,
    harness_session: binding === undefined ? null : {
      id: binding.harnessSessionId,
      persisted: binding.isPersisted,
      ...(binding.cutOffTurn === undefined ? {} : { cut_off_turn: binding.cutOffTurn }),
      ...(version === undefined ? {} : { version }),
      ...(model === undefined ? {} : { model })
    },
    inbox: { next_turn: pending.nextTurn, next_step: pending.nextStep, discard_requests: pending.discardRequests }
  }
}

const ending = ({ end }: SessionDigest.Turn, isHeld: boolean): { readonly tone: Style.Tone; readonly word: string } =>
  end === undefined
    ? { tone: "warn", word: isHeld ? "running" : "left open" }
    : { tone: Verdict.consequences(end.verdict).success ? "good" : "bad", word: TurnText.word(end.verdict) }

const kinds: Readonly<Record<InboxEntry.Receipt["kind"], string>> = {
  followup: "prompt",
  steer: "prompt for a running turn",
  inject: "text"
}

const receipt = ({ id, kind, retry_of, source, text, time }: InboxEntry.Receipt): string =>
  `  ${id}  ${kinds[kind]} from ${source}, ${Moment.format(time)}${retry_of === undefined ? "" : `, again after ${retry_of}`}: ${brief(text)}`

const text = ({ digest, pending, summary, turns }: Shown, style: Style.Style): string => {
  const { header, holder, updated } = summary
  const { binding, model, version } = digest
  const { untold, usage } = SessionDigest.total(digest.turns)
  const field = (name: string, value: string) => `  ${name.padEnd(9)} ${Printable.printable(value)}`
  const left = digest.turns.length - turns.length
  const receipts = [...pending.nextStep, ...pending.nextTurn]
  return [
    style.paint("bold", Printable.printable(`session ${header.id}${header.title === undefined ? "" : ` · ${brief(header.title)}`}`)),
    field("harness", [header.harness, version, model].filter((part) => part !== undefined && part !== "").join(" · ")),
    field("directory", header.cwd),
    field("begun", Moment.format(header.created)),
    field("changed", Moment.format(updated)),
    ...(header.parent === undefined ? [] : [field("forked", `from ${header.parent.id}, with its first ${header.parent.events} events`)]),
    field(
      "bound to",
      binding === undefined
        ? `nothing: ${header.harness} has not named its session`
        : `${binding.harnessSessionId} of ${header.harness}, ${binding.isPersisted ? "which is known to have kept it" : "which is not known to have kept it"}${
          binding.cutOffTurn === undefined ? "" : `; it was cut off in turn ${binding.cutOffTurn} and may not have all of it`
        }`
    ),
    field("held by", holder === undefined ? "nobody" : `${holder.name} since ${Moment.format(holder.since)}`),
    field("used", `${TurnText.usage(usage)}${untold > 0 && untold < digest.turns.length ? `; of ${untold} turn${untold === 1 ? "" : "s"} it is not known` : ""}`),
    "",
    style.paint("bold", `${summary.events} events in ${digest.turns.length} turn${digest.turns.length === 1 ? "" : "s"}`),
    ...(left === 0 ? [] : [style.paint("dim", `  ${left} earlier one${left === 1 ? " is" : "s are"} not shown`)]),
    ...turns.map((turn) => {
      const { tone, word } = ending(turn, holder !== undefined)
      const lasted = turn.end === undefined ? "" : ` · ${TurnText.duration(Math.max(0, turn.end.time - turn.started))}`
      return `  ${String(turn.turn).padStart(3)}  ${Moment.format(turn.started)}  ${style.paint(tone, word)}${style.paint("dim", `${lasted} · event ${turn.lastSeq}`)}${
        turn.prompt === undefined ? "" : `\n       ${turn.trigger.kind === "injection" ? "told: " : "> "}${turn.prompt}`
      }`
    }),
    "",
    style.paint("bold", receipts.length === 0 ? "nothing waits in the inbox" : `${receipts.length} wait${receipts.length === 1 ? "s" : ""} in the inbox`),
    ...receipts.map((each) => Printable.printable(receipt(each))),
    ...pending.discardRequests.map(({ by, id }) => Printable.printable(`  ${id}  is to be discarded, says ${by}`)),
    ""
  ].join("\n")
}

const command = (given: Given, [asked = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const found = yield* Sessions.find({ command: "sessions show", given }, asked)
    const { header, id, store } = found
    // Before the log is read: whoever holds the session then may be running the turn that has no end there.
    const summary = yield* Sessions.summaryOf(found)
    const gathering = SessionDigest.make(header.parent?.events ?? 0)
    yield* Stream.runForEachArray(store.read(id, -1), (events) => Effect.sync(() => events.forEach(gathering.add)))
    const digest = gathering.digest()
    const limit = one(given, "limit")
    const shown: Shown = {
      summary,
      digest,
      pending: yield* store.pending(id),
      turns: limit === undefined ? digest.turns : digest.turns.slice(-Number(limit))
    }
    yield* SessionsProgram.write(
      isOn(given, "json") ? `${JSON.stringify(toJson(shown), undefined, 2)}\n` : text(shown, Style.choose(process.stdout.isTTY === true, process.env))
    )
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
