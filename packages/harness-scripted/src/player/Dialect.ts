/**
 * The words in which a scripted agent speaks: the line between the player,
 * which knows scenarios, bytes and processes, and a protocol.
 *
 * The player's own protocol is one dialect; others come from a module that is
 * named on the command line. That is a boundary between programs and not an
 * import, so that this package needs no vendor's words and whoever writes a
 * dialect needs no dependency on this package: a module only has to have the
 * shape of {@link DialectModule}.
 */
import type { ActionOf, Json, Scenario } from "../ScenarioLanguage.ts"

/** A session as the player keeps it. */
export interface SessionState {
  /** The agent's own id of the session. It changes where the scenario says so. */
  id: string
  readonly resumed: boolean
  /** Every prompt of the session so far, the running one included. */
  readonly prompts: Array<string>
  model: string
  system: string
  /** The tools that are named as being in force. */
  tools: ReadonlyArray<string>
}

/** A turn as the player keeps it. */
export interface TurnState {
  /** 1 for the first turn of this process. */
  readonly number: number
  /** The caller's own id of the prompt; empty where the dialect has none, and in a turn that nobody asked for. */
  readonly promptId: string
  /** Empty in a turn that nobody asked for. */
  readonly prompt: string
  /** The text that was said since the last tool: the answer, unless the scenario gives another. */
  text: string
  usage: ActionOf<"usage"> | undefined
  readonly denials: Array<{ readonly call_id: string; readonly name: string; readonly input: Json }>
  /** How it ended; absent while it runs. */
  ending: "ended" | "failed" | "interrupted" | undefined
}

/** What the command line asks for. */
export type Opening =
  | {
    readonly kind: "session"
    /** A new session, under an id where one was chosen, or one to be continued. */
    readonly session: { readonly kind: "new"; readonly id: string | undefined } | { readonly kind: "resume"; readonly id: string; readonly newId?: string }
    /** Where sessions are kept. */
    readonly directory: string
    readonly model: string | undefined
    readonly system: string | undefined
  }
  /** Nothing to play: write this and exit. */
  | { readonly kind: "exit"; readonly code: number; readonly stdout: string; readonly stderr: string }

/** What a frame of standard input means. */
export type Input =
  | { readonly kind: "prompt"; readonly id: string; readonly text: string }
  | { readonly kind: "interrupt" }
  | { readonly kind: "answer"; readonly requestId: string; readonly allow: boolean; readonly reason: string }
  /** The dialect has dealt with it. With `opening` more frames belong to the opening of the session. */
  | { readonly kind: "handled"; readonly opening?: true }
  | { readonly kind: "exit"; readonly code: number; readonly stderr: string }

/** What became of a question whether a tool may run. */
export type Asked =
  | { readonly kind: "asked"; readonly requestId: string }
  | { readonly kind: "allowed" }
  | { readonly kind: "denied"; readonly reason: string }

/** A piece of text or reasoning. */
export interface Piece {
  readonly kind: "text" | "reasoning"
  readonly text: string
}

/** The actions that a dialect puts into words. The player deals with all others. */
export type Spoken =
  | ActionOf<"tool_call">
  | (ActionOf<"tool_result"> & { readonly denied?: string })
  | ActionOf<"todo">
  | ActionOf<"retry">
  | ActionOf<"note">
  | ActionOf<"background">
  | ActionOf<"bind">
  | ActionOf<"usage">

/** What a dialect is given. */
export interface DialectHost {
  /** The arguments that are the dialect's own. */
  readonly argv: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly scenario: Pick<Scenario, "handshake" | "mcp_servers" | "model" | "tools" | "reports_violations">
  /** Writes one frame. Frames keep their order. */
  readonly frame: (value: Json) => void
  /** The session; only once it is open. */
  readonly session: () => SessionState
  /**
   * Takes up a session of before, for a protocol that names it only when the
   * program runs: the open session gets its id and its prompts. Says `unknown` or
   * `in_use` where it cannot be had.
   */
  readonly resume: (id: string) => "resumed" | "unknown" | "in_use"
}

export interface Dialect {
  /** How frames are told apart, in both directions; a line each unless given. */
  readonly framing?: "lines" | "content-length"
  readonly open: () => Opening
  /** Called once the session is open and before anything is read. */
  readonly opened: () => void
  /** Says that a session that was asked for cannot be had; the process then exits with the answer. */
  readonly refuse: (why: "unknown" | "in_use", id: string) => { readonly code: number; readonly stderr: string }
  /** Reads one frame, as text. */
  readonly read: (text: string) => Input
  readonly turnStarted: (turn: TurnState) => void
  /** Begins, continues and ends a message: pieces come between the two others. */
  readonly messageStarted: (turn: TurnState, kind: Piece["kind"]) => void
  readonly piece: (turn: TurnState, piece: Piece) => void
  readonly messageEnded: (turn: TurnState, whole: Piece) => void
  /** Throws where it has no word for it: the player then exits with 70 and says so. */
  readonly say: (turn: TurnState, action: Spoken) => void
  readonly ask: (turn: TurnState, action: ActionOf<"ask">) => Asked
  readonly end: (turn: TurnState, action: ActionOf<"end">) => void
  readonly fail: (turn: TurnState, action: ActionOf<"fail">) => void
  /** Ends a turn that was interrupted. */
  readonly interrupted: (turn: TurnState) => void
  /** What a signal does where the scenario says nothing. `turn` is the running one. `undefined`: the process dies of it. */
  readonly signalled: (signal: "SIGINT" | "SIGTERM", turn: TurnState | undefined) => { readonly code: number } | undefined
  /** The exit code where standard input has ended and nothing is left to do. */
  readonly exitCode: () => number
}

/** A module that brings a dialect. */
export interface DialectModule {
  readonly makeDialect: (host: DialectHost) => Dialect
}
