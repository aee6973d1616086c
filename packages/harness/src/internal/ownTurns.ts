/**
 * Turns that a harness begins by itself while no prompt's turn is open.
 *
 * Each is read by whoever listens, and a prompt waits for its end. One that nobody
 * has begun to read when a prompt comes goes on in the prompt's turn.
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
  /** Makes a turn the one that runs; `false` where another one does, or the session is closed. */
  readonly open: (turn: LiveTurn.LiveTurn<State>) => boolean
  /** The turn runs no more. */
  readonly close: (turn: LiveTurn.LiveTurn<State>) => void
  /** Ends what is left of a turn whose reader has gone, also where it is not over. */
  readonly leave: (turn: LiveTurn.LiveTurn<State>) => Effect.Effect<void>
}

export interface OwnTurns<State> {
  /** Opens a turn for what the harness begins to do, where somebody listens and no other turn is open. */
  readonly begin: (live: LiveProcess<State>) => Effect.Effect<void>
  /** Waits until no such turn is open, and answers what is to be told in the prompt's turn of one that nobody had begun to read. */
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
  let own: Own<State> | undefined

  const end = (ended: Own<State>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (own !== ended) return Effect.void
      own = undefined
      session.close(ended.turn)
      return Effect.asVoid(Deferred.succeed(ended.over, undefined))
    })

  const eventsOf = (begun: Own<State>): Events =>
    Stream.unwrap(Effect.gen(function*() {
      if (own !== begun || begun.isRead) return Stream.fromIterable(takenOver)
      begun.isRead = true
      yield* Effect.addFinalizer(() => Effect.andThen(session.leave(begun.turn), end(begun)))
      return Stream.fromQueue(begun.turn.queue)
    }))

  const settle: OwnTurns<State>["settle"] = Effect.suspend(() => {
    const begun = own
    if (begun === undefined) return Effect.succeed([])
    if (begun.isRead) return Effect.andThen(Deferred.await(begun.over), settle)
    return Effect.gen(function*() {
      begun.turn.over = true
      yield* Asks.cancelAll(begun.turn.asks)
      // Where it has ended, or failed, before anybody read it, there is nothing more to tell.
      const told = yield* Effect.orElseSucceed(Queue.clear(begun.turn.queue), (): Array<TurnEvent.TurnEvent> => [])
      yield* Queue.shutdown(begun.turn.queue)
      yield* end(begun)
      return asPart(told)
    })
  })

  return {
    begin: (live) =>
      Effect.gen(function*() {
        const tell = listener
        if (tell === undefined || live.gone) return
        const turn = yield* LiveTurn.make<State>()
        turn.live = live
        const begun: Own<State> = { turn, isRead: false, over: yield* Deferred.make<void>() }
        if (!session.open(turn)) return
        own = begun
        turn.mark = yield* live.child.mark
        yield* Effect.forkIn(tell(eventsOf(begun)), session.scope)
      }),
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
