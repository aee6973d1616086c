/** The dialect of toy.mjs. */
import { Failure, TurnEvent } from "@turnpike/contract"
import { Dialect, Frame, JsonlPeer } from "@turnpike/harness"
import { HarnessError, Redaction } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"

const program = fileURLToPath(new URL("toy.mjs", import.meta.url))

export interface State {
  readonly text: string
  readonly open: boolean
  readonly bound: boolean
  readonly session: string
  readonly resumed: boolean
}

export interface Options {
  /** Modes of the launches, in order; the last one counts for all that follow. */
  readonly modes?: ReadonlyArray<string | undefined>
  readonly launches?: Array<Dialect.Launch>
  readonly handshakeMs?: number
  readonly ownInterrupt?: boolean
  readonly oneTurnPerProcess?: boolean
  /** Called with every frame, before anything is made of it. */
  readonly heard?: (frame: Frame.Frame) => void
}

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

export const make = (options: Options = {}): Dialect.Dialect<State> => {
  let count = 0
  return {
    harness: "toy",
    command: (launch) =>
      Effect.sync(() => {
        const modes = options.modes ?? [undefined]
        const mode = modes[Math.min(count++, modes.length - 1)]
        options.launches?.push(launch)
        return {
          program: process.execPath,
          args: [
            program,
            ...(launch._tag === "Resume" ? ["--resume", launch.harnessSessionId] : []),
            ...(mode === undefined ? [] : ["--mode", mode])
          ],
          cwd: "/"
        }
      }),
    answers: (frame) => (typeof frame["welcome"] === "string" ? frame["welcome"] : undefined),
    handshake: (peer: JsonlPeer.JsonlPeer) =>
      peer.request("h1", { hello: "h1" }, options.handshakeMs ?? 20_000).pipe(
        Effect.map((frame) => ({
          text: "",
          open: false,
          bound: false,
          session: text(frame["session"]),
          resumed: frame["resumed"] === true
        }))
      ),
    refused: (evidence) => {
      const lost = /no session (\S+)/.exec(evidence.stderr)
      return lost === null ? undefined : HarnessError.sessionLost("toy", lost[1]!)
    },
    prompt: (state, prompt) => ({
      state: { ...state, open: true, text: "", bound: true },
      outputs: [
        ...(state.bound ? [] : [
          { _tag: "Session", harnessSessionId: state.session } as const,
          {
            _tag: "Event",
            event: TurnEvent.make("session/bound", { harness_session_id: state.session, resumed: state.resumed })
          } as const
        ]),
        { _tag: "Send", frame: { prompt: JSON.parse(prompt.text) } }
      ]
    }),
    needed: (beginning) => beginning["end"] !== undefined || beginning["ask"] !== undefined,
    frame: (state, frame): Dialect.Step<State> => {
      options.heard?.(frame)
      if (Array.isArray(frame["tasks"])) {
        return { state, outputs: [{ _tag: "Tasks", tasks: frame["tasks"].map((id) => ({ id: text(id) })) }] }
      }
      if (frame["own"] === true && !state.open) {
        return { state: { ...state, open: true, text: "" }, outputs: [{ _tag: "Busy", busy: true }, { _tag: "Own" }] }
      }
      if (!state.open) return { state, outputs: [{ _tag: "Late", frame }] }
      if (typeof frame["text"] === "string") {
        const chunk = frame["text"]
        return {
          state: { ...state, text: state.text + chunk },
          outputs: [{ _tag: "Event", event: TurnEvent.make("assistant/chunk", { kind: "text", text: chunk }) }]
        }
      }
      if (typeof frame["ask"] === "string") {
        const id = frame["ask"]
        return {
          state,
          outputs: [{
            _tag: "Ask",
            callId: undefined,
            request: { requestId: id, toolName: text(frame["tool"]), input: undefined, description: undefined, listed: false },
            respond: ({ decision }) => [{ answer: id, decision }]
          }]
        }
      }
      if (typeof frame["withdraw"] === "string") return { state, outputs: [{ _tag: "Withdraw", requestId: frame["withdraw"] }] }
      if (typeof frame["failed"] === "string") {
        return { state: { ...state, open: false }, outputs: [{ _tag: "Fail", failure: Failure.make("SERVER", frame["failed"]) }] }
      }
      if (typeof frame["violation"] === "string") {
        return {
          state: { ...state, open: false },
          outputs: [{ _tag: "Kill", failure: Failure.make("POLICY_VIOLATION", frame["violation"]) }]
        }
      }
      if (frame["end"] === "completed" || frame["end"] === "aborted") {
        return {
          state: { ...state, open: false },
          outputs: [{ _tag: "Busy", busy: false }, {
            _tag: "End",
            end: { stop_reason: frame["end"], text: state.text, worked: false, denials: [], background: [] }
          }]
        }
      }
      return { state, outputs: [{ _tag: "Late", frame: frame satisfies Frame.Frame }] }
    },
    interrupt: options.ownInterrupt === false ? undefined : (state) => ({ state, outputs: [{ _tag: "Send", frame: { interrupt: true } }] }),
    died: () => undefined,
    hasOwnTurns: true,
    oneTurnPerProcess: options.oneTurnPerProcess ?? false,
    endOfInput: "2 seconds"
  }
}

export const redact: Redaction.Redactor = Redaction.shapes
