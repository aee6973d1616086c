/**
 * Turns that a harness begins by itself while it works at no prompt.
 *
 * Each is read by whoever listens, and a prompt waits for its end. One that nobody
 * has begun to read when a prompt comes goes on in the prompt's turn. A turn that is
 * over may still have readers when the next one begins.
 */
import { TurnEvent } from "@turnpike/contract"
import type { Harness, TurnError } from "@turnpike/kernel"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Notices from "../Notices.ts"
import * as Asks from "./asks.ts"
import type { LiveProcess } from "./liveProcess.ts"
import * as LiveTurn from "./liveTurn.ts"

type Events = Stream.Stream<TurnEvent.TurnEvent, TurnError.TurnError>

/** What this needs of the session. */
export interface Session<State> {
  /** What listeners run in. */
  readonly scope: Scope.Scope
  /** Completes when what belongs to the end of the turn that was last is done, where that end is decided. */
  readonly finished: Effect.Effect<void>
  /** Makes a turn the one that runs; `false` where another one does, or the session is closed. */
  readonly open: (turn: LiveTurn.LiveTurn<State>) => boolean
  /** The turn runs no more. */
  readonly close: (turn: LiveTurn.LiveTurn<State>) => void
  /** Ends what is left of a turn whose reader has gone, also where it is not over. */
  readonly leave: (turn: LiveTurn.LiveTurn<State>) => Effect.Effect<void>
}

export interface OwnTurns<State> {
  /** Opens a turn for what the harness begins to do, where somebody listens and no other turn runs. */
  readonly begin: (live: LiveProcess<State>) => Effect.Effect<void>
  /** Whether such a turn is open. */
  readonly isOpen: () => boolean
  /** Waits until those are read that somebody reads, and answers what is to be told in the prompt's turn of those that nobody had begun to read. */
  readonly settle: Effect.Effect<ReadonlyArray<TurnEvent.TurnEvent>>
  readonly listen: NonNullable<Harness.HarnessSession["onOwnTurn"]>
}

interface Own<State> {
  readonly turn: LiveTurn.LiveTurn<State>
  /** Whether somebody has begun to read it. */
  isRead: boolean
  /** Completes when it is read to its end, or taken over. */
  readonly over: Deferred.Deferred<void>
}

/** What is left to read of a turn that went on in another one. */
const takenOver: ReadonlyArray<TurnEvent.TurnEvent> = [
  Notices.make("harness_note", "a prompt came first: what the harness did by itself is told in the prompt's turn"),
  TurnEvent.make("harness/end", { stop_reason: "completed", text: "", worked: true, denials: [], background: [] })
]

/** What has no place in another turn: its ending, its steps, and what was consumed, which the other turn's end says. */
const apart: ReadonlySet<TurnEvent.TurnEvent["type"]> = new Set(["step/start", "step/end", "usage", "harness/end"])

const asPart = (events: ReadonlyArray<TurnEvent.TurnEvent>): ReadonlyArray<TurnEvent.TurnEvent> =>
  events.filter(({ type }) => !apart.has(type)).map((event) => TurnEvent.from(event, "background"))

export const make = <State>(session: Session<State>): OwnTurns<State> => {
  let listener: ((events: Events) => Effect.Effect<void>) | undefined
  /** Those that are open, in the order in which they began. */
  const open: Array<Own<State>> = []

  const end = (ended: Own<State>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const index = open.indexOf(ended)
      if (index < 0) return Effect.void
      open.splice(index, 1)
      session.close(ended.turn)
      return Effect.asVoid(Deferred.succeed(ended.over, undefined))
    })

  const eventsOf = (begun: Own<State>): Events =>
    Stream.unwrap(Effect.gen(function*() {
      if (!open.includes(begun) || begun.isRead) return Stream.fromIterable(takenOver)
      begun.isRead = true
      yield* Effect.addFinalizer(() => Effect.andThen(session.leave(begun.turn), end(begun)))
      return Stream.fromQueue(begun.turn.queue)
    }))

  const takeOver = (begun: Own<State>): Effect.Effect<ReadonlyArray<TurnEvent.TurnEvent>> =>
    Effect.gen(function*() {
      begun.turn.over = true
      yield* Asks.cancelAll(begun.turn.asks)
      // Where it has ended, or failed, before anybody read it, there is nothing more to tell.
      const told = yield* Effect.orElseSucceed(Queue.clear(begun.turn.queue), (): Array<TurnEvent.TurnEvent> => [])
      yield* Queue.shutdown(begun.turn.queue)
      yield* end(begun)
      return asPart(told)
    })

  const settle: OwnTurns<State>["settle"] = Effect.gen(function*() {
    const told: Array<TurnEvent.TurnEvent> = []
    for (let [first] = open; first !== undefined; [first] = open) {
      if (first.isRead) yield* Deferred.await(first.over)
      else told.push(...yield* takeOver(first))
    }
    return told
  })

  return {
    begin: (live) =>
      Effect.gen(function*() {
        const tell = listener
        if (tell === undefined || live.gone) return
        // A harness does not wait until its last turn has been swept up.
        yield* session.finished
        const turn = yield* LiveTurn.make<State>()
        turn.live = live
        const begun: Own<State> = { turn, isRead: false, over: yield* Deferred.make<void>() }
        if (live.gone || !session.open(turn)) return
        open.push(begun)
        turn.mark = yield* live.child.mark
        yield* Effect.forkIn(tell(eventsOf(begun)), session.scope)
      }),
    isOpen: () => open.length > 0,
    settle,
    listen: (next) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          listener = next
        }),
        () =>
          Effect.sync(() => {
            if (listener === next) listener = undefined
          })
      ))
  }
}
