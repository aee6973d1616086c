/**
 * The scripted agent's own protocol, version 1: one JSON object a line.
 *
 * The owner writes `open` first and gets `opened` or `refused`; then `prompt`,
 * `interrupt` and `answer`. Frames of a turn carry the id of its prompt. A turn
 * ends with one `end` or `fail`. The schemas are in `ScriptedWire.ts`.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Json } from "../ScenarioLanguage.ts"
import type { Dialect, DialectHost, Opening, TurnState } from "./Dialect.ts"

export const protocol = 1

/** The package's own version. */
export const version = (): string => {
  const manifest = JSON.parse(fs.readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { readonly version: string }
  return manifest.version
}

type Fields = Record<string, Json | undefined>

const present = (fields: Fields): { readonly [key: string]: Json } =>
  Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, Json] => entry[1] !== undefined))

const parse = (line: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : undefined
  } catch {
    return undefined
  }
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** Where sessions are kept unless `TURNPIKE_SCRIPTED_HOME` names a directory: the user's state directory. */
const sessionsDirectory = (env: Readonly<Record<string, string | undefined>>): string => {
  const home = env["TURNPIKE_SCRIPTED_HOME"]
  if (home !== undefined && home !== "") return path.join(home, "sessions")
  const state = env["XDG_STATE_HOME"]
  const base = state !== undefined && state !== "" ? state : path.join(env["HOME"] ?? os.homedir(), ".local", "state")
  return path.join(base, "turnpike-scripted-agent", "sessions")
}

export const makeDialect = (host: DialectHost): Dialect => {
  const ofTurn = (turn: TurnState, type: string, fields: Fields = {}) => host.frame(present({ type, turn: turn.promptId, ...fields }))
  let requests = 0
  let openId = ""

  const open = (): Opening => {
    const [flag, id] = host.argv
    if (flag === undefined) return session({ kind: "new", id: undefined })
    if (id === undefined || (flag !== "--session" && flag !== "--resume") || host.argv.length > 2) {
      return {
        kind: "exit",
        code: 2,
        stdout: "",
        stderr: `turnpike-scripted-agent: ${host.argv.join(" ")} is not understood; use --session ID or --resume ID, not both\n`
      }
    }
    return session(flag === "--session" ? { kind: "new", id } : { kind: "resume", id })
  }
  const session = (wanted: Extract<Opening, { kind: "session" }>["session"]): Opening => ({
    kind: "session",
    session: wanted,
    directory: sessionsDirectory(host.env),
    model: undefined,
    system: undefined
  })

  const announce = () => {
    const state = host.session()
    host.frame(present({
      type: "opened",
      protocol: host.scenario.handshake === "other_protocol" ? 99 : protocol,
      version: version(),
      session_id: state.id,
      resumed: state.resumed,
      model: state.model,
      tools: [...state.tools],
      mcp_servers: host.scenario.mcp_servers?.map((server) => ({ ...server })),
      cwd: host.cwd
    }))
  }

  return {
    open,
    opened: () => {},
    refuse: (why, id) => {
      const message = why === "unknown" ? `there is no session ${id}` : `session ${id} is in use`
      host.frame({ type: "refused", why, message })
      return { code: 1, stderr: `turnpike-scripted-agent: ${message}\n` }
    },
    read: (line) => {
      const frame = parse(line)
      switch (frame?.["type"]) {
        case "open": {
          if (openId !== "") return { kind: "exit", code: 1, stderr: "turnpike-scripted-agent: it is open already\n" }
          openId = "open"
          const state = host.session()
          const { model, reports_violations: lies, tools } = host.scenario
          if (text(frame["model"]) !== "" && !(lies === true && model !== undefined)) state.model = text(frame["model"])
          state.system = text(frame["system"])
          if (Array.isArray(frame["tools"]) && !(lies === true && tools !== undefined)) state.tools = frame["tools"].map(text)
          if (host.scenario.handshake !== "never") announce()
          return { kind: "handled" }
        }
        case "prompt":
          return { kind: "prompt", id: text(frame["id"]), text: text(frame["text"]) }
        case "interrupt":
          return { kind: "interrupt" }
        case "answer":
          return { kind: "answer", requestId: text(frame["id"]), allow: frame["allow"] === true, reason: text(frame["reason"]) }
        default:
          return { kind: "exit", code: 1, stderr: `turnpike-scripted-agent: this line is not understood: ${line.slice(0, 200)}\n` }
      }
    },
    turnStarted: (turn) => ofTurn(turn, "started"),
    messageStarted: () => {},
    piece: (turn, piece) => ofTurn(turn, piece.kind === "text" ? "text_delta" : "reasoning_delta", { text: piece.text }),
    messageEnded: (turn, whole) => {
      if (whole.kind === "text") ofTurn(turn, "message", { text: whole.text })
    },
    say: (turn, action) => {
      switch (action.type) {
        case "tool_call":
          return ofTurn(turn, "tool_call", { id: action.id, name: action.name, input: action.input ?? {} })
        case "tool_result":
          return ofTurn(turn, "tool_result", {
            id: action.id,
            output: action.output,
            is_error: action.is_error ?? false,
            denied: action.denied === undefined ? undefined : true
          })
        case "todo":
          return ofTurn(turn, "todo", { todos: action.todos.map((todo) => ({ ...todo })) })
        case "retry":
          return ofTurn(turn, "retry", {
            attempt: action.attempt,
            max_attempts: action.max_attempts,
            delay_ms: action.delay_ms,
            http_status: action.http_status
          })
        case "note":
          return ofTurn(turn, "note", { text: action.text })
        case "background":
          return host.frame({ type: "background", tasks: action.tasks.map((task) => present({ ...task })) })
        case "bind":
          if (action.session_id !== undefined) host.session().id = action.session_id
          return announce()
        case "usage": {
          const { type: _, ...figures } = action
          return ofTurn(turn, "usage", figures)
        }
      }
    },
    ask: (turn, action) => {
      const requestId = `q${++requests}`
      ofTurn(turn, "ask", {
        id: requestId,
        call_id: action.id,
        name: action.name,
        input: action.input ?? {},
        description: action.description
      })
      return { kind: "asked", requestId }
    },
    end: (turn, action) =>
      ofTurn(turn, "end", {
        reason: action.reason,
        text: action.text ?? turn.text,
        denials: turn.denials.map((denial) => ({ ...denial }))
      }),
    fail: (turn, action) => ofTurn(turn, "fail", { code: action.code, message: action.message, http_status: action.http_status }),
    interrupted: (turn) => ofTurn(turn, "end", { reason: "aborted", text: turn.text, denials: turn.denials.map((denial) => ({ ...denial })) }),
    signalled: () => undefined,
    exitCode: () => 0
  }
}
