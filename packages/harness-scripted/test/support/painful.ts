/**
 * Public reports of what goes wrong with agents that are driven by programs,
 * each as a scenario that does the same. The keys are the reports.
 */
import type { Action, Scenario } from "../../src/Scenario.ts"

const end: Action = { type: "end", reason: "completed" }
const say = (text: string): Action => ({ type: "text", text })
const sleep = (as: "child" | "session" | "daemon"): Action => ({ type: "spawn", argv: ["sleep", "999"], as })
const one = (...actions: ReadonlyArray<Action>): Scenario => ({ turns: [{ repeats: true, do: actions }] })

export const painful: Readonly<Record<string, Scenario>> = {
  "openclaw/openclaw#44790 leftover processes after many turns": one(sleep("child"), sleep("session"), end),
  "openai/codex#21994 children go on for an hour": one({ type: "spawn", argv: ["python3", "-c", "while True: pass"], as: "session" }, { type: "hang" }),
  "steipete/CodexBar#2789 TERM is ignored": { start: [{ type: "ignore_signals", signals: ["SIGTERM"] }], turns: [{ do: [{ type: "hang" }] }] },
  "dcellison/kai#487 the wrapper dies and the program under it lives": {
    on_sigterm: [{ type: "spawn", argv: ["sleep", "999"], as: "session", ignores: ["TERM"] }, { type: "exit", code: 0 }],
    turns: [{ do: [{ type: "hang" }] }]
  },
  "danielmiessler/LifeOS#1520 a writer outlives its killed owner": one({
    type: "repeat",
    times: 1_000_000,
    do: [{ type: "write_file", path: "counter", text: "{{i}}" }, { type: "delay", ms: 50 }]
  }),
  "anthropics/claude-code#1920 no final record": one(say("all done"), { type: "hang" }),
  "anthropics/claude-code#25629 the final record comes and the program does not go": {
    start: [{ type: "ignore_eof" }],
    turns: [{ do: [say("done"), end, { type: "hang" }] }]
  },
  "anthropics/claude-code#17248 output stops while work goes on": one(say("working"), { type: "spawn", argv: ["sh", "-c", "while :; do date >> side.log; sleep 1; done"], as: "child" }, { type: "hang" }),
  "github/copilot-sdk#794 an error record and nothing else": one({ type: "frame", value: { type: "error", message: "boom" } }, { type: "hang" }),
  "github/copilot-cli#2911 input is read no more": { after_opening: [{ type: "stop_reading" }], turns: [] },
  "pingdotgg/t3code#10798 the program is killed in the middle of a turn": one(say("a"), { type: "kill", signal: "SIGKILL" }),
  "BloopAI/vibe-kanban#1571 the working directory vanishes": one({ type: "spawn", argv: ["rm", "-rf", "{{cwd}}"], as: "child", wait: true }, say("where am I?"), end),
  "slopus/happy#465 exit 1 becomes 0 in a wrapper": one({ type: "exit", code: 1 }),
  "Ivy-Interactive/Ivy-Tendril#2626 a cut answer is stored as completed": one(say("half"), { type: "end", reason: "max-tokens" }),
  "open-gsd/gsd-pi#1967 a clean exit after our TERM": { on_sigterm: [{ type: "exit", code: 0 }], turns: [{ do: [{ type: "hang" }] }] },
  "github/copilot-sdk#991 idle while tasks run": one(say("idle"), { type: "background", tasks: [{ id: "1" }, { id: "2" }] }, end),
  "nexu-io/open-design#2268 a reconnection is told as an error": one({ type: "note", text: "Reconnecting 1/5" }, say("done"), end),
  "github/copilot-cli#1181 exit 0 without a word": one({ type: "exit", code: 0 }),
  "chenhg5/cc-connect#740 only the input was closed": {
    start: [{ type: "ignore_eof" }],
    turns: [{ do: [{ type: "repeat", times: 1000, do: [{ type: "write_file", path: "w", text: "{{i}}" }, { type: "delay", ms: 20 }] }] }]
  },
  "openonion/connectonion#1092 a cancelled tool acts later": one({ type: "spawn", argv: ["sh", "-c", "sleep 3; touch marker"], as: "session" }, { type: "hang" }),
  "xenodium/agent-shell#88 cancel while an approval is open": one({ type: "ask", id: "a", name: "execute" }, end),
  "anthropics/claude-code#8524 resume makes a new id": { resume: "new_id", turns: [{ do: [end] }] },
  "anthropics/claude-code#5012 resume starts empty": { memory: "forgets", turns: [{ do: [say("{{prompts}}"), end] }] },
  "pingdotgg/t3code#2336 killed before the first turn was kept": { after_opening: [{ type: "kill", signal: "SIGKILL" }], turns: [] },
  "openclaw/openclaw#65568 the session is gone": { resume: "unknown", turns: [] },
  "openclaw/acpx#185 the program dies after its opening": { after_opening: [{ type: "delay", ms: 200 }, { type: "stderr", text: "boom\n" }, { type: "exit", code: 1 }], turns: [] },
  "anthropics/claude-agent-sdk-python#550 a log line inside a character": one({ type: "write", base64: "5A==" }, { type: "write", text: "2026-01-01 log\n" }, { type: "write", base64: "u7YK" }, end),
  "anthropics/claude-agent-sdk-python#15 two objects on one line": one({ type: "join_next" }, say("a"), say("b"), end),
  "inkbox-ai/claude-code-plugin#11 a line over the limit": one({ type: "huge_line", bytes: 200_000_000 }, end),
  "openclaw/acpx#160 chatter before the protocol": { start: [{ type: "write", text: "Welcome!\n" }], turns: [{ do: [end] }] },
  "anthropics/claude-code#25670 output in blocks of 8 KiB": { start: [{ type: "buffer_writes", bytes: 8192 }], turns: [{ do: [say("a"), end, { type: "exit", code: 0 }] }] },
  "openai/codex#20919 input is read to its end before anything": one({ type: "wait_for", what: "eof" }, say("at last"), end),
  "chenhg5/cc-connect#1 a variable of the parent stops the child": {
    start: [{ type: "if_env", name: "CLAUDECODE", set: [{ type: "stderr", text: "cannot be started inside another session\n" }, { type: "exit", code: 1 }] }],
    turns: [{ do: [end] }]
  },
  "github/copilot-cli#550 a question on the output": one({ type: "write", text: "Allow access? (y/n): " }, { type: "hang" }),
  "google-gemini/gemini-cli#4372 more tools than asked": { tools: ["read", "execute"], reports_violations: true, turns: [{ do: [end] }] },
  "anthropics/claude-code#76204 the approval channel dies": one({ type: "close", stream: "stdin" }, { type: "ask", id: "a", name: "execute" }, end),
  "anthropics/claude-code#34046 a tool runs unasked": one({ type: "tool_call", id: "a", name: "execute" }, { type: "tool_result", id: "a", output: "" }, end),
  "anomalyco/opencode#28375 a queued prompt leaks into the running turn": one({ type: "delay", ms: 200 }, say("{{prompts}}"), end),
  "JonathanRosado/claude-anyteam#40 the opening takes minutes": { start: [{ type: "delay", ms: 600_000 }], turns: [] },
  "smithersai/smithers#175 usage is told twice": one(
    { type: "usage", input_tokens: 1, output_tokens: 1 },
    { type: "usage", input_tokens: 10, output_tokens: 5 },
    end
  ),
  "gitmoot/gitmoot#658 no usage": one(say("done"), end),
  "anthropics/claude-code#75087 overloaded five times, then well": {
    turns: [
      ...Array.from({ length: 5 }, () => ({ do: [{ type: "fail", code: "OVERLOADED", message: "overloaded", http_status: 529 } as const] })),
      { do: [say("done"), end] }
    ]
  },
  "griffinwork40/agent-afk#762 overloaded without a status": one(say("a"), { type: "fail", code: "OVERLOADED", message: "overloaded" }),
  "nanocoai/nanoclaw#2968 an MCP server failed": { mcp_servers: [{ name: "mail", status: "failed" }], turns: [{ do: [say("I sent it"), end] }] },
  "pingdotgg/t3code#4596 an event for every token": one({ type: "repeat", times: 10_000, do: [{ type: "text", text: "t ", pieces: 1 }] }, end)
}
