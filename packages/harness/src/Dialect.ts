/**
 * What a warm session must know of one harness's program: how it is started,
 * what is said to it, and what its frames mean.
 *
 * A dialect is a table, not an actor: it holds nothing and does nothing. Its
 * functions take the state of the conversation with one process and return the
 * next state with what is to be done, so a recording can be translated without
 * a process. The state begins with each process anew.
 */
import type { Failure, TurnEvent } from "@turnpike/contract"
import type { HarnessError, Permission, Prompt } from "@turnpike/kernel"
import type { Child, Command } from "@turnpike/process"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Frame from "./Frame.ts"
import type * as JsonlPeer from "./JsonlPeer.ts"

/** Why a process is started. */
export type Launch =
  /** The session begins, or begins again because no process of it ever named an id. */
  | { readonly _tag: "Begin" }
  /** The harness is to go on with a session that it has. */
  | { readonly _tag: "Resume"; readonly harnessSessionId: string }

/** How a permission request ended. */
export interface Outcome {
  readonly decision: TurnEvent.Of<"permission/decision">["data"]["decision"]
  readonly reason: string
}

/** Everything but the ending. */
export type Event = Exclude<TurnEvent.TurnEvent, TurnEvent.TurnEnd>

/** One thing to do about a frame. They are done in order. */
export type Output =
  /** To be seen by the turn's reader. Between turns only notices are kept. */
  | { readonly _tag: "Event"; readonly event: Event }
  | { readonly _tag: "Send"; readonly frame: Frame.Frame }
  /** The harness waits for an answer; `respond` makes it. The request and the decision become events. */
  | {
    readonly _tag: "Ask"
    readonly request: Permission.Request
    readonly callId: string | undefined
    /** An answer that the session's options hold already; the decider is then not asked. */
    readonly preset?: Permission.Answer & { readonly by: string }
    readonly respond: (outcome: Outcome) => ReadonlyArray<Frame.Frame>
  }
  /** The harness no longer waits for the answer. */
  | { readonly _tag: "Withdraw"; readonly requestId: string }
  /** The frame belongs to no turn, or to one that is over. */
  | { readonly _tag: "Late"; readonly frame: Frame.Frame }
  /** The id to resume with. Before the first one a process that is lost is begun again. */
  | { readonly _tag: "Session"; readonly harnessSessionId: string }
  /** All declared tasks that run now. */
  | { readonly _tag: "Tasks"; readonly tasks: ReadonlyArray<TurnEvent.BackgroundTask> }
  /** The harness works, or has stopped working, on its own account, outside any turn. */
  | { readonly _tag: "Busy"; readonly busy: boolean }
  /**
   * The harness begins a turn that nobody prompted. What follows is of that turn, up
   * to its `End` or `Fail`; where nobody listens it becomes notices. Nothing is done
   * while a prompt's turn is open.
   */
  | { readonly _tag: "Own" }
  /** The harness has ended its turn. */
  | { readonly _tag: "End"; readonly end: TurnEvent.TurnEnd["data"] }
  /** The harness has ended its turn and says that it failed. Its process stays. */
  | { readonly _tag: "Fail"; readonly failure: Failure.Failure }
  /** The harness broke a hard limit, or can no longer be trusted with this turn: its process is killed, then the turn fails. */
  | { readonly _tag: "Kill"; readonly failure: Failure.Failure }

export interface Step<State> {
  readonly state: State
  readonly outputs: ReadonlyArray<Output>
}

/** A message for the running turn, as a request. */
export interface Steering<State> {
  readonly state: State
  readonly requestId: string
  readonly frame: Frame.Frame
  /** Whether the program says that it has taken the message. */
  readonly isTaken: (answer: Frame.Frame) => boolean
}

/** What is known of a process that went away or never became a harness. */
export interface Evidence {
  readonly launch: Launch
  /** What it said that nobody has read, before its handshake was done. */
  readonly received: ReadonlyArray<Frame.Received>
  /** Undefined where the process still runs. */
  readonly exit: Child.ProcessExit | undefined
  /** The end of its standard error, unredacted. */
  readonly stderr: string
  /** Whether the handshake's time was up. */
  readonly late: boolean
}

export interface Dialect<State> {
  /** The harness's name. */
  readonly harness: string
  readonly command: (launch: Launch) => Effect.Effect<Command.Command, HarnessError.HarnessError>
  /** How its frames are told apart; a line each unless given. */
  readonly framing?: "lines" | "content-length"
  /** Which request a frame answers; `undefined` for a frame that is no answer. */
  readonly answers: (frame: Frame.Frame) => string | undefined
  /**
   * Makes sure that the process is the harness and ready for a prompt, and gives
   * the first state. What it fails with is explained by `refused`.
   */
  readonly handshake: (
    peer: JsonlPeer.JsonlPeer,
    launch: Launch
  ) => Effect.Effect<State, HarnessError.HarnessError | JsonlPeer.PeerClosed | JsonlPeer.AnswerLate>
  /** Why the handshake failed, in the dialect's words; `undefined` leaves the explanation to the session. */
  readonly refused: (evidence: Evidence) => HarnessError.HarnessError | undefined
  /** Begins a turn. A `Fail` refuses the prompt; nothing is then sent. */
  readonly prompt: (state: State, prompt: Prompt.Prompt) => Step<State>
  readonly frame: (state: State, frame: Frame.Frame) => Step<State>
  /**
   * Whether the turn cannot go on without this record, of which only the beginning
   * could be read: it ends the turn, or the harness waits for an answer to it. The
   * process is then killed and the turn fails.
   */
  readonly needed: (beginning: Frame.Frame) => boolean
  /**
   * Puts a message into the running turn; `undefined` where the turn cannot take
   * one now. Absent where the program has no way to.
   */
  readonly steer?: (state: State, message: Prompt.Prompt) => Steering<State> | undefined
  /** Asks for the running turn's end; `undefined` where the program has no way of its own: it is then sent INT. */
  readonly interrupt: ((state: State) => Step<State>) | undefined
  /** Why a process that went away in the middle of a turn did so; `undefined` leaves the explanation to the session. */
  readonly died: (evidence: Evidence) => Failure.Failure | undefined
  /** Whether the program begins turns by itself, as `Own` tells. */
  readonly hasOwnTurns?: boolean
  /** Whether the program ends by itself after each turn. Its exit is then waited for and told. */
  readonly oneTurnPerProcess: boolean
  /** How long the program gets to end by itself once its input has ended. */
  readonly endOfInput: Duration.Input
}
