/** Runs a played program as its owner would, and recordings to compare it with. */
import * as Effect from "effect/Effect"
import { execFile, spawn } from "node:child_process"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"

export type Frame = { readonly [key: string]: unknown }

/** One thing that the owner does: writes a line, or waits for a frame. */
export type Step =
  | { readonly send: string | Frame }
  | { readonly until: (frame: Frame) => boolean }
  /** Writes what is made of the last frame that was waited for. */
  | { readonly reply: (frame: Frame) => Frame }
  | { readonly signal: NodeJS.Signals }

export interface Ran {
  readonly stdout: Buffer
  readonly frames: ReadonlyArray<Frame>
  readonly stderr: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export const framesOf = (bytes: Buffer): ReadonlyArray<Frame> =>
  bytes.toString("utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Frame)

/** The frames behind their lengths. */
export const announcedFramesOf = (bytes: Buffer): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf("\r\n\r\n", at)
    if (end === -1) break
    const length = Number(/(\d+)/.exec(bytes.subarray(at, end).toString("latin1"))?.[1])
    const start = end + 4
    if (bytes.length < start + length) break
    frames.push(JSON.parse(bytes.subarray(start, start + length).toString("utf8")) as Frame)
    at = start + length
  }
  return frames
}

export type Framing = "lines" | "content-length"

const encode = (frame: Frame, framing: Framing): string => {
  const text = JSON.stringify(frame)
  return framing === "lines" ? `${text}\n` : `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

/** Runs a program through the steps, then gives it the end of its input and waits for its end. Where it is not waited for any more, it is killed. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  steps: ReadonlyArray<Step>,
  env: NodeJS.ProcessEnv = {},
  framing: Framing = "lines"
): Effect.Effect<Ran> =>
  Effect.promise((signal) => new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { PATH: process.env["PATH"], ...env }, stdio: "pipe", signal, killSignal: "SIGKILL" })
    const out: Array<Buffer> = []
    let stderr = ""
    let rest = ""
    let seen = 0
    let at = 0
    let last: Frame = {}
    const proceed = (frame: Frame | undefined) => {
      let unread = frame
      for (;;) {
        const step = steps[at]
        if (step === undefined) return void child.stdin.end()
        if ("until" in step) {
          if (unread === undefined || !step.until(unread)) return
          last = unread
          unread = undefined
        } else if ("send" in step) child.stdin.write(typeof step.send === "string" ? `${step.send}\n` : encode(step.send, framing))
        else if ("reply" in step) child.stdin.write(encode(step.reply(last), framing))
        else child.kill(step.signal)
        at++
      }
    }
    child.on("error", reject)
    child.stdin.on("error", () => {})
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString("utf8")
    })
    child.stdout.on("data", (chunk: Buffer) => {
      out.push(chunk)
      if (framing === "content-length") {
        const frames = announcedFramesOf(Buffer.concat(out))
        for (const frame of frames.slice(seen)) proceed(frame)
        seen = frames.length
        return
      }
      const lines = (rest + chunk.toString("utf8")).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) proceed(JSON.parse(line) as Frame)
    })
    child.on("close", (code, signal) => {
      const stdout = Buffer.concat(out)
      resolve({ stdout, frames: framing === "lines" ? framesOf(stdout) : announcedFramesOf(stdout), stderr, code, signal })
    })
    proceed(undefined)
  }))

/** Runs a program that says something that is no frames, with nothing on its input. */
export const runText = (
  program: string,
  args: ReadonlyArray<string>
): Effect.Effect<{ readonly stdout: string; readonly stderr: string; readonly code: number }> =>
  Effect.promise((signal) => new Promise((resolve) => {
    const child = execFile(program, [...args], { signal, killSignal: "SIGKILL" }, (error, stdout, stderr) =>
      resolve({ stdout, stderr, code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1 }))
    child.stdin?.end()
  }))

const folder = fileURLToPath(new URL("../../../../test/fixtures/claude/2.1.332/", import.meta.url))

export interface Recording {
  readonly file: string
  readonly bytes: Buffer
  readonly frames: ReadonlyArray<Frame>
  readonly stderr: string
  readonly argv: ReadonlyArray<string>
  readonly exitCode: number | null
}

/** Reads a recording of the real program. */
export const recording = (name: string): Recording => {
  const meta = JSON.parse(fs.readFileSync(`${folder}${name}.meta.json`, "utf8")) as {
    readonly argv: ReadonlyArray<string>
    readonly exitCode: number | null
  }
  const file = `${folder}${name}.stdout`
  const bytes = fs.readFileSync(file)
  return {
    file,
    bytes,
    frames: framesOf(bytes),
    stderr: fs.readFileSync(`${folder}${name}.stderr`, "utf8"),
    argv: meta.argv.slice(1),
    exitCode: meta.exitCode
  }
}

/** What kind of frame it is, by the tags that the program gives it. */
export const kindOf = (frame: Frame): string => {
  const inner = (key: string, tag: string): string => {
    const value = frame[key]
    return typeof value === "object" && value !== null ? `/${String((value as Frame)[tag])}` : ""
  }
  const message = frame["message"] as { readonly content?: unknown } | undefined
  const block = Array.isArray(message?.content) ? `/${String((message.content[0] as Frame | undefined)?.["type"])}` : ""
  return `${String(frame["type"])}${frame["subtype"] === undefined ? "" : `/${String(frame["subtype"])}`}${inner("event", "type")}${
    inner("request", "subtype")
  }${inner("response", "subtype")}${block}`
}

/** Maps whose keys are values, such as the names of models: their keys say nothing about the shape. */
const maps = new Set(["modelUsage", "model_usage_since_last_result", "by_type", "input"])

/** The fields of a frame and their types, as lines `path: type`. */
export const shapeOf = (value: unknown, path = "", into = new Set<string>()): ReadonlySet<string> => {
  if (Array.isArray(value)) {
    into.add(`${path}: list`)
    for (const each of value) shapeOf(each, `${path}[]`, into)
  } else if (typeof value === "object" && value !== null) {
    if (path !== "") into.add(`${path}: object`)
    const isMap = maps.has(path.split(".").at(-1) ?? "")
    for (const [key, each] of Object.entries(value)) shapeOf(each, `${path}.${isMap ? "*" : key}`, into)
  } else into.add(`${path}: ${value === null ? "null" : typeof value}`)
  return into
}
