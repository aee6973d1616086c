#!/usr/bin/env node
/**
 * toy-agent: a command-line agent that is small enough to be read, and somebody else's as far as
 * Turnpike is concerned.
 *
 * It speaks JSON, one object a line, each with an `op`; `conversation.jsonl` has an exchange. It
 * remembers each chat in a file of its home, runs two tools (`look` reads a file, `sh` runs a
 * command), asks before one that it was not told is free, and knows one model: a parrot, which
 * answers with everything it was asked. `model.json` in its home replaces the parrot: for a prompt,
 * or `*` for any other, the list of what the model wants. Two keys of `hooks.json`, `start` and
 * `ready`, are commands that it runs before and after its greeting. Hooks run unasked and share its
 * standard output, which is how the best of agents comes to write lines that are no JSON.
 */
import { spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { StringDecoder } from "node:string_decoder"

const version = "1.0.0"
const home = process.env.TOY_HOME ?? path.join(os.homedir(), ".toy-agent")

const leave = (code, words) => {
  if (words !== undefined) fs.writeSync(2, `toy-agent: ${words}\n`)
  process.exit(code)
}
const [argument = "", ...more] = process.argv.slice(2)
if (argument === "--version") {
  fs.writeSync(1, `toy-agent ${version}\n`)
  process.exit(0)
}
const wanted = /^--chat=(.*)$/.exec(argument)?.[1]
if (more.length > 0 || (argument !== "" && wanted === undefined)) leave(2, "usage: toy-agent [--chat=ID | --version]")

const chat = wanted ?? randomUUID().slice(0, 8)
const file = path.join(home, `${chat}.chat`)
if (wanted !== undefined && !(/^[\w-]+$/.test(wanted) && fs.existsSync(file))) leave(4, `there is no chat ${wanted}`)
fs.mkdirSync(home, { recursive: true })
fs.appendFileSync(file, "")
/** Every prompt of the chat, each a line of JSON in its file. */
const prompts = fs.readFileSync(file, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))

const settings = (name) => {
  const named = path.join(home, name)
  return fs.existsSync(named) ? JSON.parse(fs.readFileSync(named, "utf8")) : {}
}
const model = settings("model.json")
const hooks = settings("hooks.json")

/** Writes a frame, whole, before anything else happens. */
const say = (frame) => {
  let bytes = Buffer.from(`${JSON.stringify(frame)}\n`)
  while (bytes.length > 0) bytes = bytes.subarray(fs.writeSync(1, bytes))
}

let rules = ""
let free = []
/** The running turn, and who waits in it for the owner's word. */
let turn
let answer
let stopped
let calls = 0

const shell = (line, stdio) => spawnSync("sh", ["-c", line], { stdio, encoding: "utf8" })
const hook = (line) => shell(line, ["ignore", "inherit", "inherit"]).status === 0

/** Tools, each with what it made of its line. */
const tools = {
  look: (line) => {
    try {
      return { how: "ok", out: fs.readFileSync(line, "utf8") }
    } catch (error) {
      return { how: "failed", out: error.message }
    }
  },
  sh: (line) => {
    const { status, stderr, stdout } = shell(line, ["ignore", "pipe", "pipe"])
    return { how: status === 0 ? "ok" : "failed", out: `${stdout}${stderr}` }
  },
  hook: (line) => ({ how: hook(line) ? "ok" : "failed", out: "" })
}

/** What the parrot wants. */
const parrot = (text) => {
  const [, tool, line] = /^(look|sh) (.+)$/.exec(text) ?? []
  return tool === undefined ? [{ say: "$prompts" }] : [{ [tool]: line }, { say: "That was it." }]
}

const run = async (number, name, line) => {
  const id = `call-${++calls}`
  // A hook is the user's own; it is told as the command that it is.
  const shown = name === "hook" ? "sh" : name
  const ask = name !== "hook" && !free.includes(name)
  say({ op: "tool", turn: number, id, name: shown, line, ask })
  const go = !ask || await new Promise((resolve) => {
    answer = { id, resolve }
  })
  if (stopped) return
  say({ op: "ran", turn: number, id, ...(go ? tools[name](line) : { how: "denied", out: "it was not allowed" }) })
}

const play = async (number, text) => {
  let tokens
  const done = (why) => {
    turn = undefined
    say({ op: "done", turn: number, why, ...(tokens === undefined ? {} : { tokens }) })
  }
  for (const want of model[text] ?? model["*"] ?? parrot(text)) {
    const [[name, value]] = Object.entries(want)
    if (name === "say") say({ op: "text", turn: number, add: value.replace("$rules", () => rules).replace("$prompts", () => JSON.stringify(prompts)) })
    else if (name === "tokens") tokens = value
    else if (name === "done") done(value)
    else if (name === "hang") await new Promise((resolve) => { answer = { resolve } })
    else await run(number, name, value)
    // A turn of the event loop: here a request to stop is heard.
    await new Promise(setImmediate)
    if (stopped && turn === number) return done("stopped")
  }
  if (turn === number) done("answered")
}

const hear = (frame) => {
  switch (frame.op) {
    case "hello":
      if (frame.v !== 1) return leave(3, `the protocol is version 1, not ${frame.v}`)
      rules = frame.rules
      // What the user has set free stays free.
      free = [...frame.free, ...(settings("free.json").tools ?? [])]
      if (hooks.start !== undefined) hook(hooks.start)
      say({ op: "hello", v: 1, toy: version, chat, free })
      if (hooks.ready !== undefined) hook(hooks.ready)
      return
    case "prompt":
      prompts.push(frame.text)
      fs.appendFileSync(file, `${JSON.stringify(frame.text)}\n`)
      turn = frame.turn
      stopped = false
      return void play(frame.turn, frame.text)
    case "go":
      if (answer?.id === frame.id) answer.resolve(frame.yes)
      return
    case "stop":
      stopped = true
      return answer?.resolve(false)
    default:
      return leave(3, `nobody knows the op ${frame.op}`)
  }
}

process.on("SIGTERM", () => process.exit(0))
process.on("SIGINT", () => turn === undefined ? process.exit(130) : hear({ op: "stop" }))
const decoder = new StringDecoder("utf8")
let rest = []
process.stdin.on("data", (bytes) => {
  const [first, ...lines] = decoder.write(bytes).split("\n")
  rest.push(first)
  for (const line of lines) {
    hear(JSON.parse(rest.join("")))
    rest = [line]
  }
})
process.stdin.on("end", () => process.exit(0))
