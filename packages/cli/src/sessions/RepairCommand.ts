/**
 * `turnpike sessions repair`: what opening a session would put in order; with
 * `--apply`, does it.
 */
import { Printable } from "@turnpike/channel-terminal"
import { Failure, type InboxEntry } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Given, isOn } from "../CommandLine.ts"
import * as Store from "../Store.ts"
import * as RepairPlan from "./RepairPlan.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"

/** All that the inbox has received, by id. */
const receiptsOf = ({ id, store }: Sessions.Found) =>
  Stream.runFold(store.inbox(id), () => new Map<InboxEntry.ReceiptId, InboxEntry.Receipt>(), (receipts, entry) =>
    entry.type === "received" ? receipts.set(entry.id, entry) : receipts)

const heldRemedy = "Whoever holds a session has put it in order. Wait until it is let go, or end what holds it."

/** How far a log can be read that cannot be read to its end, and how that part is saved. */
const tellSaved = (given: Given, id: string, scan: RepairPlan.Scan, failure: Failure.Failure): Effect.Effect<void, SessionsProgram.Problem> => {
  const readable = scan.state().next
  const at = scan.lastTurnEnd()
  if (isOn(given, "json")) {
    return SessionsProgram.writeJson({ session_id: id, applied: false, failure, readable_events: readable, last_turn_end: at ?? null })
  }
  return SessionsProgram.write([
    `session ${id} is damaged, and was not changed`,
    `  its first ${readable} events can be read`,
    at === undefined
      ? "  no turn has ended among them, so that there is nothing to save"
      : `  \`turnpike sessions fork ${id} --at ${at}\` begins a new session with the turns that have ended among them`,
    ""
  ].join("\n"))
}

const tell = (given: Given, id: string, repair: RepairPlan.Repair, tools: ReadonlyMap<string, string>, isDone: boolean): ReturnType<typeof SessionsProgram.write> => {
  if (isOn(given, "json")) {
    return SessionsProgram.writeJson({
      session_id: id,
      applied: isDone,
      closed: repair.closed,
      cut_bytes: repair.cutBytes,
      requeued: repair.requeued.map(({ id, kind, retry_of, source, text, time }) => ({ id, kind, source, text, time, ...(retry_of === undefined ? {} : { retry_of }) }))
    })
  }
  if (RepairPlan.isNothing(repair)) return SessionsProgram.write(`session ${id} is in order: there is nothing to do\n`)
  return SessionsProgram.write([
    `session ${id} ${isDone ? "was put in order" : "was left by a crash; opening it puts it in order, and nothing was changed yet"}`,
    ...RepairPlan.sentences(repair, tools, isDone).map((sentence) => `  ${Printable.printable(sentence)}`),
    ...(isDone ? [] : [`→ \`turnpike sessions repair ${id} --apply\` does it now; the next run or chat does it by itself`]),
    ""
  ].join("\n"))
}

/** Reads the log as far as it can be read. Where that is not to its end, says how far, and fails. */
const scanned = (given: Given, { id, store }: Sessions.Found): Effect.Effect<RepairPlan.Scan, SessionsProgram.Problem> =>
  Effect.suspend(() => {
    const scan = RepairPlan.scan()
    return Stream.runForEachArray(store.read(id, -1), (events) =>
      Effect.suspend(() => {
        for (const event of events) {
          const violation = scan.add(event)
          if (violation !== undefined) {
            return Effect.fail(new SessionStore.SessionStoreError({
              failure: Failure.make("SESSION_DAMAGED", `event ${event.seq} of session ${id} breaks a rule of its log: ${violation.message}`)
            }))
          }
        }
        return Effect.void
      })).pipe(
        Effect.tapError(({ failure }) => failure.code === "SESSION_DAMAGED" ? tellSaved(given, id, scan, failure) : Effect.void),
        Effect.as(scan)
      )
  })

const planOf = (found: Sessions.Found, scan: RepairPlan.Scan) =>
  Effect.map(receiptsOf(found), (receipts) => RepairPlan.plan(scan.state(), receipts))

const command = (given: Given, [asked = ""]: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const found = yield* Sessions.find({ command: "sessions repair", given }, asked)
    const { id, store } = found
    let scan = yield* scanned(given, found)
    if (isOn(given, "apply")) {
      const { recovery } = yield* Effect.scoped(store.open(id, Store.holder("sessions repair"))).pipe(Sessions.withRemedy("SESSION_BUSY", heldRemedy))
      yield* SessionsProgram.afterwards(
        tell(given, id, recovery, scan.tools(), true),
        RepairPlan.isNothing(recovery) ? `session ${id} is in order` : `session ${id} was put in order`
      )
      return 0
    }
    if (!RepairPlan.isNothing(yield* planOf(found, scan))) {
      const holder = yield* Sessions.holderOf(found)
      if (holder !== undefined) return yield* Sessions.busy(id, holder, heldRemedy)
      // Whoever held it may have ended its turn in between.
      scan = yield* scanned(given, found)
    }
    yield* tell(given, id, yield* planOf(found, scan), scan.tools(), false)
    return 0
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
