#!/usr/bin/env node
/**
 * A harness that says a lot, at an even pace, and when it said it: each piece of its answer is the
 * moment at which it was written, in nanoseconds of the clock that all processes share.
 *
 * It speaks as the scripted agent does (SENDER_DIALECT=scripted) or as Claude Code does (claude): there
 * its frames are those of a recording, word for word but for ids and the piece. One write of the
 * system a frame, as a program does that streams. The first prompt is answered by SENDER_FRAMES pieces,
 * SENDER_RATE a second. How late each was is written to SENDER_REPORT: a pace that this process did not
 * keep is no delay of the reader's.
 */
import * as fs from "node:fs"
import { createInterface } from "node:readline"

if (process.argv.includes("--version")) {
  process.stdout.write("2.1.332 (Claude Code)\n")
  process.exit(0)
}

const frames = Number(process.env.SENDER_FRAMES)
const rate = Number(process.env.SENDER_RATE)
const napping = new Int32Array(new SharedArrayBuffer(4))
const now = () => Number(process.hrtime.bigint())

/** Writes at once and whole; waits while the reader does not read. */
const write = (text) => {
  const bytes = Buffer.from(`${text}\n`)
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(1, bytes, at)
    } catch (error) {
      if (error.code !== "EAGAIN") throw error
      Atomics.wait(napping, 0, 0, 0.1)
    }
  }
}

/** Says all pieces, each when it is due; answers how late each was, in nanoseconds. */
const stream = (piece) => {
  const late = new Float64Array(frames)
  const begun = now()
  for (let index = 0; index < frames; index++) {
    const due = begun + index * 1e9 / rate
    // Asleep: one who waits awake takes a core from whoever is to be measured. The kernel wakes it a little late.
    for (let left = due - now(); left > 0; left = due - now()) Atomics.wait(napping, 0, 0, left / 1e6)
    const at = now()
    late[index] = at - due
    write(piece(String(at)))
  }
  return late
}

const report = (late) => {
  if (process.env.SENDER_REPORT === undefined) return
  const { system, user } = process.cpuUsage()
  fs.writeFileSync(process.env.SENDER_REPORT, JSON.stringify({ late_us: Array.from(late, (one) => Math.round(one / 1000)), cpu_ms: Math.round((user + system) / 1000) }))
}

const scripted = (line) => {
  const frame = JSON.parse(line)
  if (frame.type === "open") {
    write(JSON.stringify({ type: "opened", protocol: 1, version: "1.0.0", session_id: "sender", resumed: false, model: "sender", tools: ["read", "search"], cwd: process.cwd() }))
  } else if (frame.type === "prompt") {
    const turn = frame.id
    write(JSON.stringify({ type: "started", turn }))
    const [before, after] = JSON.stringify({ type: "text_delta", turn, text: "@" }).split("@")
    report(stream((at) => before + at + after))
    write(JSON.stringify({ type: "message", turn, text: `sent ${frames}` }))
    write(JSON.stringify({ type: "end", turn, reason: "completed", text: `sent ${frames}`, denials: [] }))
  }
}

const claude = () => {
  const recorded = fs.readFileSync(new URL("../../fixtures/claude/2.1.332/w1-two-turns.stdout", import.meta.url), "utf8").trimEnd().split("\n")
  const typeOf = (line) => JSON.parse(line).type
  const first = recorded.slice(0, recorded.findIndex((line) => typeOf(line) === "result") + 1)
  const isPiece = (line) => line.includes('"type":"text_delta"')
  const piece = first.find(isPiece)
  const from = first.findIndex(isPiece)
  const said = JSON.parse(first.find((line) => typeOf(line) === "assistant")).message.content[0].text
  return (line) => {
    const frame = JSON.parse(line)
    if (frame.type === "control_request") {
      write(JSON.stringify({ type: "control_response", response: { subtype: "success", request_id: frame.request_id, response: {} } }))
    } else if (frame.type === "user") {
      const own = (text) => text.replaceAll("00000000-0000-4000-8000-000000000001", frame.uuid ?? "").replaceAll(JSON.stringify(said), JSON.stringify(`sent ${frames}`))
      // The answer to the opening was given.
      for (const text of first.slice(1, from)) write(own(text))
      const [before, after] = piece.split(JSON.stringify(JSON.parse(piece).event.delta.text))
      report(stream((at) => `${before}"${at}"${after}`))
      for (const text of first.slice(from).filter((each) => !isPiece(each))) write(own(text))
    }
  }
}

const hear = process.env.SENDER_DIALECT === "claude" ? claude() : scripted
createInterface({ input: process.stdin }).on("line", (line) => line.trim() === "" ? undefined : hear(line)).on("close", () => process.exit(0))
