/**
 * Plays a recorded run byte for byte: what a program wrote, at the pace at
 * which it wrote it, and then its exit code or signal.
 *
 * A recording is a file with what was written to standard output and, beside
 * it under the same name with `.meta.json`, a JSON object with `exitCode` or
 * `signal`, and optionally `lineTimes` (milliseconds of each line, in order)
 * and `events` (milliseconds and a text; those that begin with `stdin<` say
 * that the run had been given something). Such a line of input is waited for
 * before anything is written that came after it.
 */
import * as fs from "node:fs"
import * as timers from "node:timers/promises"
import type { Output } from "./Output.ts"

export interface Recording {
  readonly bytes: Buffer
  readonly exitCode: number
  readonly signal: "SIGINT" | "SIGKILL" | "SIGTERM" | undefined
  /** Milliseconds of each line. */
  readonly times: ReadonlyArray<number>
  /** Milliseconds at which each line of input came. */
  readonly inputs: ReadonlyArray<number>
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const pairs = (value: unknown): ReadonlyArray<readonly [number, string]> =>
  Array.isArray(value) ? value.map((each: unknown) => (Array.isArray(each) ? [Number(each[0]), String(each[1])] : [0, ""])) : []

/** Reads a recording. Throws with a sentence where it is none. */
export const read = (file: string): Recording => {
  const metaFile = file.replace(/\.\w+$/u, "") + ".meta.json"
  const meta: unknown = JSON.parse(fs.readFileSync(metaFile, "utf8"))
  if (!isRecord(meta)) throw new Error(`${metaFile} is not a JSON object`)
  const signal = meta["signal"]
  return {
    bytes: fs.readFileSync(file),
    exitCode: Number(meta["exitCode"] ?? 0),
    signal: signal === "SIGINT" || signal === "SIGKILL" || signal === "SIGTERM" ? signal : undefined,
    times: pairs(meta["lineTimes"]).map(([at]) => at),
    inputs: pairs(meta["events"]).filter(([, what]) => what.startsWith("stdin<")).map(([at]) => at)
  }
}

/** Lines with their line feeds; what follows the last line feed is a line too. */
const linesOf = (bytes: Buffer): ReadonlyArray<Buffer> => {
  const lines: Array<Buffer> = []
  let from = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
    lines.push(bytes.subarray(from, at + 1))
    from = at + 1
  }
  if (from < bytes.length) lines.push(bytes.subarray(from))
  return lines
}

/** Plays a recording, so many times faster; 0 leaves no pauses. Ends the process. */
export const play = async (recording: Recording, output: Output, speed: number): Promise<void> => {
  let given = 0
  let ended = false
  let wake: () => void = () => {}
  process.stdin.on("data", (chunk: Buffer) => {
    for (const byte of chunk) if (byte === 10) given++
    wake()
  })
  process.stdin.on("end", () => {
    ended = true
    wake()
  })
  const inputs = async (count: number) => {
    while (given < count && !ended) await new Promise<void>((resolve) => { wake = resolve })
  }
  let now = 0
  for (const [i, line] of linesOf(recording.bytes).entries()) {
    const at = recording.times[i] ?? now
    await inputs(recording.inputs.filter((time) => time <= at).length)
    if (speed > 0 && at > now) await timers.setTimeout((at - now) / speed)
    now = Math.max(now, at)
    output.bytes(line)
  }
  // A recorded run that was given input ended when its input did.
  if (recording.inputs.length > 0 && recording.signal === undefined) await inputs(Number.POSITIVE_INFINITY)
  await output.flushed()
  if (recording.signal === undefined) process.exit(recording.exitCode)
  process.kill(process.pid, recording.signal)
}
