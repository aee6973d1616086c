/** The logs that the store's benchmarks write and read: the words of this project's documents as a model would say them. */
import type { SessionEvent, SessionHeader } from "@turnpike/contract"
import { Scalars } from "@turnpike/contract"
import * as fs from "node:fs"

const documents = new URL("../../../docs/", import.meta.url)

/** Pieces of text as models send them: a word with the space before it. */
const pieces: ReadonlyArray<string> = fs.readdirSync(documents).filter((name) => name.endsWith(".md") && name !== "benchmarks.md").sort()
  .flatMap((name) => fs.readFileSync(new URL(name, documents), "utf8").match(/\s*\S{1,12}/g) ?? [])

const firstTime = 1_790_000_000_000

/** When an event came, in milliseconds: 50 pieces a second, not evenly. */
const timeOf = (seq: number): number => firstTime + seq * 20 + (seq * 7919) % 17

export const sessionId = (number: number) => Scalars.SessionId.make(`session-${number}`)

export const headerOf = (number: number): SessionHeader.SessionHeader =>
  ({ type: "session", format: 1, id: sessionId(number), created: firstTime, harness: "scripted", cwd: "/project", title: `What was asked first in session ${number}` })

export const piece = (seq: number): SessionEvent.SessionEvent =>
  ({ seq, time: timeOf(seq), type: "assistant/chunk", data: { kind: "text", text: pieces[seq % pieces.length] ?? "" } })

/** How many events a turn has: its prompt, an answer of 480 pieces, a tool with its result, the message, the boundaries. */
export const turnLength = 490

const message = (turn: number): string => Array.from({ length: 480 }, (_, index) => pieces[(turn * turnLength + index) % pieces.length]).join("")

/** One event of a log of whole turns, by its place. */
const inTurn = (seq: number, turn: number, place: number): SessionEvent.SessionEvent => {
  const about = { seq, time: timeOf(seq) }
  switch (place) {
    case 0:
      return { ...about, type: "turn/start", data: { turn, trigger: { kind: "message", source: "user" } } }
    case 1:
      return { ...about, type: "step/start", data: { step: 1 } }
    case 2:
      return { ...about, type: "user/message", data: { text: `prompt ${turn}: ${message(turn).slice(0, 200)}`, source: "user" }, surface_op: "append" }
    case 483:
      return { ...about, type: "tool/call", data: { call_id: `call-${turn}`, name: "read", input: { path: `src/${turn}.ts` } } }
    case 484:
      return { ...about, type: "tool/result", data: { call_id: `call-${turn}`, is_error: false, output: message(turn).slice(0, 1000) }, surface_op: "append", source_event_seqs: [seq - 1] }
    case 485:
      return { ...about, type: "assistant/message", data: { text: message(turn) }, surface_op: "append" }
    case 486:
      return { ...about, type: "notice", data: { kind: "harness_note", message: `what is worth a note in turn ${turn}` } }
    case 487:
      return { ...about, type: "usage", data: { final: true, usage: { tokens: { source: "reported", input_tokens: 1200 + turn, output_tokens: 480 }, cost: { source: "unavailable" } } } }
    case 488:
      return { ...about, type: "step/end", data: { step: 1 } }
    case 489:
      return { ...about, type: "turn/end", data: { turn, verdict: { type: "completed" } } }
    default:
      return piece(seq)
  }
}

/** Event `seq` of a log of whole turns. */
export const event = (seq: number): SessionEvent.SessionEvent => inTurn(seq, 1 + Math.floor(seq / turnLength), seq % turnLength)

export const events = (first: number, count: number, of = event): ReadonlyArray<SessionEvent.SessionEvent> =>
  Array.from({ length: count }, (_, index) => of(first + index))
