/** A session driver with a log and an inbox in memory that can fail, and what must hold of every such session. */
import { Failure, type InboxEntry, Scalars, type SessionEvent, type SessionHeader, type Verdict } from "@turnpike/contract"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { LogState, SessionDriver, SessionStore } from "../../src/index.ts"

export const header: SessionHeader.SessionHeader = {
  type: "session",
  format: 1,
  id: Scalars.SessionId.make("session-1"),
  created: 0,
  harness: "fake",
  cwd: "/project"
}

export interface Scene {
  readonly events: Array<SessionEvent.SessionEvent>
  readonly received: Array<InboxEntry.Receipt>
  readonly discarded: Array<{ readonly id: string; readonly cause: string }>
  readonly options: Omit<SessionDriver.Options, "execute" | "wakeAtStart">
  /** Receives as another process would, past the driver. */
  readonly receiveElsewhere: (message: SessionStore.Message) => Effect.Effect<InboxEntry.Receipt, SessionStore.SessionStoreError>
  readonly requestDiscard: (id: string) => Effect.Effect<void>
  /** Called before each commit; a failure is the medium's. */
  fault: (body: SessionEvent.Body) => boolean
  /** Receipts that were handed to a turn, with how many events the log had then. */
  readonly handed: Map<string, number>
  /** The inside of a turn, remembering what it was handed. */
  readonly watched: (execute: SessionDriver.Execute) => SessionDriver.Execute
  /** What was told of as trouble. */
  readonly troubles: Array<string>
}

const full = new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", "no space left") })

export const make = (): Scene => {
  const events: Array<SessionEvent.SessionEvent> = []
  const received: Array<InboxEntry.Receipt> = []
  const discarded: Array<{ readonly id: string; readonly cause: string }> = []
  const requests: Array<{ readonly id: string; readonly by: string }> = []
  const troubles: Array<string> = []
  const handed = new Map<string, number>()
  let changed = Deferred.makeUnsafe<void>()
  let version = 0
  let last = 0
  let open: { readonly turn: number; step: number | undefined } | undefined

  const claimedIds = () => new Set(events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : []))
  const waiting = () => {
    const gone = new Set([...claimedIds(), ...discarded.map(({ id }) => id)])
    return received.filter(({ id }) => !gone.has(id))
  }
  const announce = Effect.suspend(() => {
    const before = changed
    version++
    changed = Deferred.makeUnsafe<void>()
    return Effect.asVoid(Deferred.succeed(before, undefined))
  })

  const receive = (message: SessionStore.Message) =>
    Effect.gen(function*() {
      yield* Effect.yieldNow
      const earlier = message.key === undefined ? undefined : received.find(({ key }) => key === message.key)
      if (earlier !== undefined) {
        if (earlier.kind === message.kind && earlier.text === message.text) return { receipt: earlier, isNew: false }
        return yield* new SessionStore.SessionStoreError({ failure: Failure.make("KEY_CONFLICT", "another message has this key") })
      }
      const receipt: InboxEntry.Receipt = { ...message, id: `r${received.length + 1}`, time: 0 }
      received.push(receipt)
      yield* announce
      return { receipt, isNew: true }
    })

  /** What may stand there, by the event before it: what the driver gets wrong is a defect here. */
  const enter = (body: SessionEvent.Body): SessionEvent.SessionEvent => {
    if (body.type === "inbox/claimed") {
      const free = new Set(waiting().map(({ id }) => id))
      if (!body.data.ids.every((id) => free.has(id))) throw new Error("claimed what does not wait")
    }
    const event: SessionEvent.SessionEvent = { seq: events.length, time: 0, ...body }
    events.push(event)
    if (body.type === "turn/start") {
      last = body.data.turn
      open = { turn: last, step: undefined }
    }
    if (body.type === "turn/end") open = undefined
    if (body.type === "step/start" && open !== undefined) open.step = body.data.step
    if (body.type === "step/end" && open !== undefined) open.step = undefined
    return event
  }

  const appendAll: SessionDriver.Log["appendAll"] = (bodies) =>
    Effect.gen(function*() {
      yield* Effect.yieldNow
      if (bodies.some((body) => scene.fault(body))) return yield* full
      return bodies.map(enter)
    }).pipe(Effect.uninterruptible)

  const scene: Scene = {
    events,
    received,
    discarded,
    troubles,
    handed,
    watched: (execute) => (turn) =>
      Effect.suspend(() => {
        for (const { id } of turn.messages) {
          if (handed.has(id)) throw new Error(`receipt ${id} runs a second time`)
          handed.set(id, events.length)
        }
        return execute(turn)
      }),
    fault: () => false,
    receiveElsewhere: (message) => Effect.map(receive(message), ({ receipt }) => receipt),
    requestDiscard: (id) =>
      Effect.suspend(() => {
        if (!received.some((receipt) => receipt.id === id)) return Effect.void
        requests.push({ id, by: "somebody" })
        return announce
      }),
    options: {
      store: {
        receive: (_, message) => receive(message),
        pending: () =>
          Effect.andThen(Effect.yieldNow, Effect.sync(() => ({
            version,
            nextTurn: waiting().filter(({ kind }) => kind === "followup"),
            nextStep: waiting().filter(({ kind }) => kind !== "followup"),
            discardRequests: requests.filter(({ id }) => waiting().some((receipt) => receipt.id === id))
          }))),
        inboxChanged: (_, since) => Effect.suspend(() => since < version ? Effect.void : Deferred.await(changed))
      },
      writer: {
        header,
        discard: (ids, cause) =>
          Effect.andThen(Effect.yieldNow, Effect.sync(() => {
            const found = waiting().filter(({ id }) => ids.includes(id))
            discarded.push(...found.map(({ id }) => ({ id, cause })))
            return found
          }))
      },
      log: {
        append: (body) => Effect.map(appendAll([body]), ([event]) => event!),
        appendAll,
        lastTurn: () => last,
        openTurn: () => open?.turn,
        dangling: () => open?.step === undefined ? [] : [{ type: "step/end", data: { step: open.step } }]
      },
      trouble: (error) => Effect.sync(() => void troubles.push(error.failure.code))
    }
  }
  return scene
}

/** The log in one word an event, with what matters of it. */
export const words = (events: ReadonlyArray<SessionEvent.SessionEvent>): ReadonlyArray<string> =>
  events.map((event) => {
    switch (event.type) {
      case "turn/start":
        return `turn/start ${event.data.turn} ${event.data.trigger.kind}`
      case "turn/end":
        return `turn/end ${event.data.turn} ${verdictWord(event.data.verdict)}`
      case "inbox/claimed":
        return `claimed ${event.data.ids.join(" ")}`
      case "user/message":
      case "context/message":
      case "steering/message":
        return `${event.type} ${event.data.text}`
      case "error":
        return `error ${event.data.code}`
      default:
        return event.type
    }
  })

const verdictWord = (verdict: Verdict.Verdict): string =>
  verdict.type === "aborted"
    ? `aborted ${verdict.cause} ${verdict.mode}`
    : verdict.type === "error"
    ? `error ${verdict.error.code}`
    : verdict.type

/** What recovery would do wrong, had there been a crash after any of the events. */
const faultsOfCrashes = ({ events, handed }: Scene): ReadonlyArray<string> => {
  const found: Array<string> = []
  let state = LogState.empty()
  for (const [index, event] of events.entries()) {
    const next = LogState.next(state, event)
    if (Result.isFailure(next)) return [...found, `${index}: ${next.failure.message}`]
    state = next.success
    for (const id of LogState.unspent(state)) {
      const length = handed.get(id)
      if (length !== undefined && length <= index + 1) found.push(`${index}: after a crash ${id} runs a second time`)
    }
  }
  return found
}

/** What is wrong with a log and its inbox, whatever happened; `isOver` where no turn may be open any more. */
export const faults = (scene: Scene, isOver: boolean): ReadonlyArray<string> => {
  const found: Array<string> = []
  let open: number | undefined
  let last = 0
  let step = false
  let prompted = false
  scene.events.forEach((event, index) => {
    if (event.seq !== index) found.push(`${index}: seq ${event.seq}`)
    if (event.type === "turn/start") {
      if (open !== undefined) found.push(`${index}: turn ${event.data.turn} within turn ${open}`)
      if (event.data.turn !== last + 1) found.push(`${index}: turn ${event.data.turn} after ${last}`)
      open = last = event.data.turn
      prompted = false
      return
    }
    if (open === undefined) found.push(`${index}: ${event.type} outside a turn`)
    switch (event.type) {
      case "turn/end":
        if (event.data.turn !== open) found.push(`${index}: end of ${event.data.turn} in ${open}`)
        if (step) found.push(`${index}: the turn ends with its step open`)
        open = undefined
        break
      case "step/start":
        if (step) found.push(`${index}: a step within a step`)
        step = true
        break
      case "step/end":
        if (!step) found.push(`${index}: no step to end`)
        step = false
        break
      case "user/message":
        if (prompted) found.push(`${index}: two prompts in one turn`)
        if (!step) found.push(`${index}: a prompt outside a step`)
        prompted = true
        break
    }
  })
  if (isOver && open !== undefined) found.push(`turn ${open} is open`)
  found.push(...faultsOfCrashes(scene))
  const claimed = scene.events.flatMap((event) => event.type === "inbox/claimed" ? event.data.ids : [])
  const discarded = scene.discarded.map(({ id }) => id)
  for (const { id } of scene.received) {
    const times = claimed.filter((one) => one === id).length + discarded.filter((one) => one === id).length
    if (times > 1) found.push(`${id} was claimed or discarded ${times} times`)
  }
  return found
}
