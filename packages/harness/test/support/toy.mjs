// A program for the tests of a warm session. It answers {hello} with {welcome},
// and plays each prompt, a JSON list of actions.
// argv: [--resume ID] [--mode lost|junk|silent|early]
import { spawn } from "node:child_process"
import { closeSync } from "node:fs"
import { createInterface } from "node:readline"

const argument = (name) => {
  const at = process.argv.indexOf(name)
  return at === -1 ? undefined : process.argv[at + 1]
}
const mode = argument("--mode")
const session = argument("--resume") ?? `toy-${process.pid}`
const say = (frame) => process.stdout.write(`${JSON.stringify(frame)}\n`)

if (mode === "junk") {
  process.stdout.write("welcome to the wrong program\n")
  process.stderr.write("usage: toy, token=abcdefghijkl\n")
  process.exit(4)
}
if (mode === "lost") {
  process.stderr.write(`no session ${session}\n`)
  process.exit(1)
}
if (mode === "early") {
  say({ chatter: "before" })
  process.stdout.write("not json at all\n")
}

let resume = () => {}
const waiting = () => new Promise((resolve) => { resume = resolve })
let interrupted = false
let deaf = false

const play = async (actions) => {
  for (const [action, value, more] of actions) {
    if (interrupted) break
    switch (action) {
      case "say": say({ text: value }); break
      case "raw": process.stdout.write(Buffer.from(value, "base64")); break
      case "frame": say(value); break
      case "flood": for (let n = 0; n < value; n++) if (!process.stdout.write(`${JSON.stringify({ text: `${n}` })}\n`)) await new Promise((r) => process.stdout.once("drain", r)); break
      case "err": process.stderr.write(value); break
      case "sleep": await new Promise((resolve) => setTimeout(resolve, value)); break
      case "wait": await waiting(); break
      case "ask": say({ ask: value, tool: more }); await waiting(); break
      case "spawn": spawn("/bin/sh", ["-c", value], { detached: true, stdio: "ignore" }).unref(); break
      case "tasks": say({ tasks: value }); break
      case "pid": say({ text: String(process.pid) }); break
      case "exit": await new Promise((resolve) => process.stdout.write("", resolve)); process.exit(value)
      case "kill": process.kill(process.pid, value); await new Promise(() => {})
      case "stop-reading": deaf = true; process.stdin.destroy(); try { closeSync(0) } catch {} setInterval(() => {}, 1000); break
      case "hang": await new Promise(() => setInterval(() => {}, 1000))
      case "fail": say({ failed: value }); return
      case "later": setTimeout(() => { say({ own: true }); void play(more) }, value); break
    }
  }
  if (interrupted) { interrupted = false; say({ end: "aborted" }); return }
  say({ end: "completed" })
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const frame = JSON.parse(line)
  if (frame.hello !== undefined) {
    if (mode === "silent") return
    say({ welcome: frame.hello, session, resumed: argument("--resume") !== undefined })
  } else if (frame.prompt !== undefined) void play(frame.prompt)
  else if (frame.interrupt) { interrupted = true; resume() }
  else if (frame.answer !== undefined) { say({ text: `answer ${frame.answer} ${frame.decision}` }); resume() }
}).on("close", () => { if (mode !== "stubborn" && !deaf) process.exit(0) })
