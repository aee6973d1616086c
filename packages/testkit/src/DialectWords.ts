/**
 * The shape of a dialect: what a module exports so that the scripted agent's
 * executable speaks a vendor's protocol when it plays a scenario.
 *
 * The executable belongs to harness-scripted and knows scenarios, bytes and
 * processes; a dialect knows a vendor's words, and a package that ships must
 * not. The two meet when the executable is told to load a module by its path,
 * so neither package depends on the other, and the shape is written down on
 * both sides, as a protocol would be. The tests of harness-scripted compare
 * the two.
 */

export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** A session as the player keeps it. The dialect may change the fields that are not read-only. */
export interface SessionState {
  /** The agent's own id of the session. */
  id: string
  readonly resumed: boolean
  /** Every prompt of the session so far, the running one included. */
  readonly prompts: Array<string>
  model: string
  system: string
  /** The tools that are named as being in force. */
  tools: ReadonlyArray<string>
}

export interface Figures {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_tokens?: number
  readonly cache_write_tokens?: number
  readonly cost_usd?: number
}

/** A turn as the player keeps it. */
export interface TurnState {
  /** 1 for the first turn of the process. */
  readonly number: number
  /** The caller's own id of the prompt; empty where it has none, and in a turn that nobody asked for. */
  readonly promptId: string
  /** Empty in a turn that nobody asked for. */
  readonly prompt: string
  /** The text that was said since the last tool. */
  text: string
  usage: Figures | undefined
  readonly denials: Array<{ readonly call_id: string; readonly name: string; readonly input: Json }>
  /** How it ended; absent while it runs. */
  ending: "ended" | "failed" | "interrupted" | undefined
}

/** What the command line asks for. */
export type Opening =
  | {
    readonly kind: "session"
    readonly session:
      | { readonly kind: "new"; readonly id: string | undefined }
      | { readonly kind: "resume"; readonly id: string; readonly newId?: string }
    /** Where sessions are kept. */
    readonly directory: string
    readonly model: string | undefined
    readonly system: string | undefined
  }
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

export interface Piece {
  readonly kind: "text" | "reasoning"
  readonly text: string
}

/** The actions of a scenario that a dialect puts into words, but for text, questions and endings. */
export type Spoken =
  | { readonly type: "tool_call"; readonly id: string; readonly name: string; readonly input?: Json }
  | { readonly type: "tool_result"; readonly id: string; readonly output: string; readonly is_error?: boolean; readonly denied?: string }
  | { readonly type: "todo"; readonly todos: ReadonlyArray<{ readonly content: string; readonly status: string }> }
  | { readonly type: "retry"; readonly attempt: number; readonly max_attempts: number; readonly delay_ms: number; readonly http_status?: number }
  | { readonly type: "note"; readonly text: string }
  | { readonly type: "background"; readonly tasks: ReadonlyArray<{ readonly id: string; readonly description?: string }> }
  | { readonly type: "bind"; readonly session_id?: string }
  | ({ readonly type: "usage" } & Figures)

export interface Question {
  readonly id: string
  readonly name: string
  readonly input?: Json
  readonly description?: string
}

export interface Ending {
  readonly reason: "completed" | "max-tokens" | "max-turns" | "refusal" | "aborted"
  /** Absent means the text of the turn. */
  readonly text?: string
}

export interface Failing {
  readonly code: string
  readonly message: string
  readonly http_status?: number
}

/** What a dialect is given. */
export interface DialectHost {
  /** The arguments that are the dialect's own. */
  readonly argv: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly scenario: {
    readonly handshake?: "answer" | "never" | "other_protocol"
    readonly mcp_servers?: ReadonlyArray<{ readonly name: string; readonly status: string }>
    readonly model?: string
    readonly tools?: ReadonlyArray<string>
    readonly reports_violations?: boolean
  }
  /** Writes one frame, framed as the dialect says. Frames keep their order. */
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
  /** Says that a session cannot be had; the process then exits with the answer. */
  readonly refuse: (why: "unknown" | "in_use", id: string) => { readonly code: number; readonly stderr: string }
  /** Reads one frame, as text. */
  readonly read: (text: string) => Input
  readonly turnStarted: (turn: TurnState) => void
  readonly messageStarted: (turn: TurnState, kind: Piece["kind"]) => void
  readonly piece: (turn: TurnState, piece: Piece) => void
  readonly messageEnded: (turn: TurnState, whole: Piece) => void
  /** Throws where the vendor has no word for it: the player then exits with 70 and says so. */
  readonly say: (turn: TurnState, action: Spoken) => void
  readonly ask: (turn: TurnState, question: Question) => Asked
  readonly end: (turn: TurnState, ending: Ending) => void
  readonly fail: (turn: TurnState, failing: Failing) => void
  /** Ends a turn that was interrupted. */
  readonly interrupted: (turn: TurnState) => void
  /** What a signal does; `undefined`: the process dies of it. Says nothing where no turn runs. */
  readonly signalled: (signal: "SIGINT" | "SIGTERM", turn: TurnState | undefined) => { readonly code: number } | undefined
  /** The exit code where standard input has ended and nothing is left to do. */
  readonly exitCode: () => number
}

/** What a dialect's module exports. */
export interface DialectModule {
  readonly makeDialect: (host: DialectHost) => Dialect
}
