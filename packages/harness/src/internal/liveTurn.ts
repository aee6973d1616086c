/**
 * One turn while it runs: its queue of events and its open permission requests.
 */
import { TurnEvent } from "@turnpike/contract"
import type { TurnError } from "@turnpike/kernel"
import type { Child, ProcessInfo } from "@turnpike/process"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Notices from "../Notices.ts"
import type * as Asks from "./asks.ts"
import type { LiveProcess } from "./liveProcess.ts"

/** Events that may wait for the turn's reader before the process is held back: 256. */
export const maxWaiting = 256

export interface LiveTurn<State> {
  readonly queue: Queue.Queue<TurnEvent.TurnEvent, TurnError.TurnError | Cause.Done>
  readonly asks: Asks.Asks
  /** Undefined until the prompt is about to be sent. */
  live: LiveProcess<State> | undefined
  mark: Child.Mark
  interrupted: boolean
  /** Whether its ending is decided. What the process says from now on is not of this turn. */
  over: boolean
  /** Brings the turn to its ending. */
  finishing: Fiber.Fiber<void> | undefined
}

export const make = <State>(): Effect.Effect<LiveTurn<State>> =>
  Effect.map(Queue.bounded<TurnEvent.TurnEvent, TurnError.TurnError | Cause.Done>(maxWaiting), (queue) => ({
    queue,
    asks: new Map(),
    live: undefined,
    mark: { alive: new Set<string>() },
    interrupted: false,
    over: false,
    finishing: undefined
  }))

/** The ending of a turn that was cancelled before its prompt was sent. */
export const neverBegun: TurnEvent.TurnEvent = TurnEvent.make("harness/end", {
  stop_reason: "aborted",
  text: "",
  worked: false,
  denials: [],
  background: [],
  harness_reason: "cancelled before the prompt was sent"
})

/** Tells of processes that a turn left behind. */
export const leftovers = (killed: ReadonlyArray<ProcessInfo.ProcessInfo>): TurnEvent.Of<"notice"> =>
  Notices.make(
    "killed_leftovers",
    `${killed.length === 1 ? "a process that the turn left behind was" : `${killed.length} processes that the turn left behind were`} killed`,
    { raw: killed.map(({ command, pid }) => ({ pid, command })) }
  )
