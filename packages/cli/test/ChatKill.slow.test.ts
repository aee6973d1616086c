/**
 * A conversation whose process is killed at random moments, again and again: what
 * its reader has seen is in the log, whatever moment it was.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import type { AgentRunEvent, SessionEvent } from "@turnpike/contract"
import { LogState, SessionLog, type SessionStore } from "@turnpike/kernel"
import { SqliteSessionStore } from "@turnpike/session-store"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Turnpike from "./support/Turnpike.ts"

const rounds = Number(process.env["TURNPIKE_ROUNDS"] ?? 25)
const seed = Number(process.env["TURNPIKE_SEED"] ?? 20261201)

/** mulberry32: small, and the same everywhere. */
const random = (start: number) => {
  let state = start >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The whole lines that came before the end. */
const eventsOf = (stdout: string): ReadonlyArray<AgentRunEvent.AgentRunEvent> =>
  stdout.split("\n").slice(0, -1).map((line) => JSON.parse(line) as AgentRunEvent.AgentRunEvent)

type Log = ReadonlyArray<SessionEvent.SessionEvent>

const turnOf = (log: Log, turn: number): Log => {
  const start = log.findIndex((event) => event.type === "turn/start" && event.data.turn === turn)
  const end = log.findIndex((event) => event.type === "turn/end" && event.data.turn === turn)
  return start < 0 ? [] : log.slice(start, end < 0 ? undefined : end + 1)
}

/** What was seen of runs and is not in the log. */
const unkept = (seen: ReadonlyArray<AgentRunEvent.AgentRunEvent>, log: Log): ReadonlyArray<string> => {
  const faults: Array<string> = []
  for (const run of new Set(seen.map((event) => event.run_id))) {
    const events = seen.filter((event) => event.run_id === run)
    const turn = events.flatMap((event) => event.type === "turn_start" ? [event.turn] : [])[0]
    if (turn === undefined) continue
    const logged = turnOf(log, turn)
    const pieces = (all: ReadonlyArray<{ readonly type: string; readonly data?: unknown; readonly text?: unknown }>, type: string) =>
      all.flatMap((event) => event.type === type ? [String((event.data as { readonly text?: unknown } | undefined)?.text ?? event.text)] : [])
    for (const [told, kept] of [["text_delta", "assistant/chunk"], ["message", "assistant/message"]] as const) {
      const wanted = pieces(events, told)
      const found = pieces(logged, kept).slice(0, wanted.length)
      if (wanted.join("\0") !== found.join("\0")) faults.push(`turn ${turn}: of ${wanted.length} ${told} the log has ${found.length}, or others`)
    }
    for (const event of events) {
      if (event.type === "result") {
        const end = logged.at(-1)
        if (end?.type !== "turn/end" || JSON.stringify(end.data.verdict) !== JSON.stringify(event.result.verdict)) faults.push(`turn ${turn}: its result is not in the log`)
        const log = event.result.session_log
        if (JSON.stringify(log) !== JSON.stringify(logged.filter(({ type }) => type !== "assistant/chunk"))) faults.push(`turn ${turn}: its result has another log`)
      }
    }
  }
  return faults
}

/** What does not hold of receipts: each is claimed once, or waits, or was taken back. */
const unaccounted = (store: SessionStore.Service, id: string, log: Log) =>
  Effect.gen(function*() {
    const entries = [...yield* Stream.runCollect(store.inbox(id))]
    const { nextStep, nextTurn } = yield* store.pending(id)
    const claims = log.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])
    const discarded = entries.flatMap((entry) => entry.type === "discarded" ? entry.ids : [])
    return entries.flatMap((entry) => {
      if (entry.type !== "received") return []
      const places = claims.filter((claim) => claim === entry.id).length +
        [...nextStep, ...nextTurn].filter((receipt) => receipt.id === entry.id).length +
        (discarded.includes(entry.id) && !claims.includes(entry.id) ? 1 : 0)
      return places === 1 ? [] : [`receipt ${entry.id} stands in ${places} places`]
    })
  })

describe("a conversation that is killed at any moment", () => {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-chat-kill-"))
  afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }))

  it(`has in its log what its reader has seen, and loses no prompt (${rounds} rounds, seed ${seed})`, async () => {
    const next = random(seed)
    const scenario = path.join(scratch, "talkative.json")
    fs.writeFileSync(scenario, JSON.stringify({
      turns: [{
        repeats: true,
        do: [
          { type: "text", text: Array.from({ length: 20 }, (_, index) => `piece ${index} `).join(""), delay_ms: 3 },
          { type: "tool_call", id: "look-{{turn}}", name: "read", input: { path: "README.md" } },
          { type: "tool_result", id: "look-{{turn}}", output: "nothing" },
          { type: "text", text: "done with {{prompt}}" },
          { type: "end", reason: "completed" }
        ]
      }]
    }))
    const home = { home: scratch }
    const seen: Array<AgentRunEvent.AgentRunEvent> = []
    const kinds = new Map<string, number>()
    for (let round = 0; round < rounds; round++) {
      const running = Turnpike.start(["chat", "--harness", "scripted", "--scenario", scenario, "--session", "killed", "--format", "events"], home)
      for (let n = 0; n < 6; n++) running.child.stdin.write(`${JSON.stringify({ type: "prompt", text: `round ${round}, prompt ${n}` })}\n`)
      await running.until("\n")
      await new Promise((resolve) => setTimeout(resolve, next() * 700))
      running.child.kill("SIGKILL")
      const { stdout } = await running.ended
      seen.push(...eventsOf(stdout))

      const faults = await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
        const store = yield* SqliteSessionStore.make({ directory: path.join(scratch, "data") })
        const before = [...yield* Stream.runCollect(store.read("killed", -1))]
        const state = LogState.all(LogState.empty(), before)
        if (Result.isFailure(state)) return [state.failure.message]
        const open = before.filter(({ type }) => type === "turn/start").length - before.filter(({ type }) => type === "turn/end").length
        if (open !== 0 && open !== 1) return [`${open} turns are open`]
        kinds.set(open === 1 ? "open" : "closed", (kinds.get(open === 1 ? "open" : "closed") ?? 0) + 1)
        const log = yield* SessionLog.open(store, "killed", "the test")
        if (log.openTurn() !== undefined) return ["the turn is open after its repair"]
        const after = [...yield* Stream.runCollect(store.read("killed", -1))]
        if (JSON.stringify(after.slice(0, before.length)) !== JSON.stringify(before)) return ["the repair changed what was there"]
        return [...unkept(seen, after), ...yield* unaccounted(store, "killed", after)]
      })))
      assert.deepStrictEqual(faults, [], `round ${round}`)
    }
    // The rounds are worth something only if much was seen, and they end in several ways.
    assert.isAbove(seen.filter(({ type }) => type === "text_delta").length, rounds * 5)
    if (rounds >= 20) assert.deepStrictEqual([...kinds.keys()].toSorted(), ["closed", "open"])
  }, 600_000)
})
