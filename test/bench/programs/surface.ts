/**
 * What one more turn costs whoever keeps the messages of a session at hand, after logs of these lengths: its
 * events taken in, and the messages asked for. Of turns without pieces, so that there are many messages.
 */
import type { SessionEvent } from "@turnpike/contract"
import { Surface } from "@turnpike/kernel"
import { answer } from "../support/answer.ts"

export interface Arguments {
  readonly lengths: ReadonlyArray<number>
  readonly repeats: number
}

export interface Cost {
  readonly events: number
  readonly messages: number
  /** Microseconds that the events of one more turn take, repeat by repeat. */
  readonly add_us: ReadonlyArray<number>
  /** Microseconds until the array of all messages is there. */
  readonly messages_us: ReadonlyArray<number>
  /** Microseconds that the whole log takes from its beginning. */
  readonly whole_us: ReadonlyArray<number>
  /** Whether what was kept is what the whole log comes to. */
  readonly isSame: boolean
}

const turnLength = 8

const turn = (number: number): ReadonlyArray<SessionEvent.SessionEvent> =>
  ([
    { type: "turn/start", data: { turn: number, trigger: { kind: "message", source: "user" } } },
    { type: "step/start", data: { step: 1 } },
    { type: "user/message", data: { text: `prompt ${number}`, source: "user" }, surface_op: "append" },
    { type: "tool/call", data: { call_id: `call-${number}`, name: "read", input: { path: `src/${number}.ts` } } },
    { type: "tool/result", data: { call_id: `call-${number}`, is_error: false, output: `line ${number}` }, surface_op: "append" },
    { type: "assistant/message", data: { text: `answer ${number}` }, surface_op: "append" },
    { type: "step/end", data: { step: 1 } },
    { type: "turn/end", data: { turn: number, verdict: { type: "completed" } } }
  ] satisfies ReadonlyArray<SessionEvent.Body>).map((body, index) => ({ seq: (number - 1) * turnLength + index, time: 1_790_000_000_000, ...body }))

const added = (surface: Surface.Surface, events: ReadonlyArray<SessionEvent.SessionEvent>): Surface.Surface => events.reduce(Surface.add, surface)

const microseconds = (work: () => void): number => {
  const from = process.hrtime.bigint()
  work()
  return Number(process.hrtime.bigint() - from) / 1000
}

/** So many turns are taken in at once that the clock can tell; few beside the log. */
const turnsAtOnce = 10

const cost = (events: number, repeats: number): Cost => {
  const turns = Math.ceil(events / turnLength)
  const log = Array.from({ length: turns }, (_, index) => turn(index + 1)).flat()
  const more = Array.from({ length: turnsAtOnce }, (_, index) => turn(turns + index + 1))
  const whole_us: Array<number> = []
  const add_us: Array<number> = []
  const messages_us: Array<number> = []
  let messages: ReadonlyArray<Surface.Message> = []
  for (let repeat = 0; repeat < repeats; repeat++) {
    let surface = Surface.empty()
    whole_us.push(microseconds(() => {
      surface = added(surface, log)
    }))
    add_us.push(microseconds(() => {
      for (const events of more) surface = added(surface, events)
    }) / turnsAtOnce)
    messages_us.push(microseconds(() => {
      messages = Surface.messages(surface)
    }))
  }
  const isSame = JSON.stringify(messages) === JSON.stringify(Surface.deriveMessages([...log, ...more.flat()]))
  return { events, messages: messages.length, add_us, messages_us, whole_us, isSame }
}

await answer(async ({ lengths, repeats }: Arguments): Promise<ReadonlyArray<Cost>> => {
  // The compiler's work is not the first length's.
  cost(1000, repeats)
  return lengths.map((length) => cost(length, repeats))
})
