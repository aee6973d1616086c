/** Kills owners at random moments and counts what outlives them. */
import * as fs from "node:fs"
import * as Specimens from "./specimens.ts"
import { type Stage, startDriver } from "./stages.ts"

/** A repeatable sequence of numbers from 0 to 1 (mulberry32). */
export const random = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Waits until nothing of the directory is alive; answers what is after 10 s. */
export const survivors = async (directory: string): Promise<ReadonlyArray<Specimens.Specimen>> => {
  const deadline = performance.now() + 10_000
  while (true) {
    const alive = Specimens.alive(directory)
    if (alive.length === 0 || performance.now() > deadline) return alive
    await pause(20)
  }
}

export interface Round {
  readonly delayMs: number
  /** How many processes of the program there were when the owner was killed. */
  readonly running: number
  readonly survivors: ReadonlyArray<Specimens.Specimen>
}

/**
 * Starts an owner, kills it with SIGKILL `delayMs` after it has begun to spawn a
 * program whose children get away, and answers what is alive 10 s later at most.
 */
export const killOwner = async (
  stage: Stage,
  delayMs: number,
  /** Done after the delay, with the owner's pid and the program's directory. */
  before: (owner: number, directory: string) => Promise<void> = async () => {}
): Promise<Round> => {
  const directory = Specimens.makeDirectory("owner")
  Specimens.touch(directory, Specimens.escaped)
  const owner = startDriver(stage, { mode: "hold", names: [], concurrency: 1, directory })
  let errors = ""
  owner.stderr.on("data", (chunk) => errors += chunk)
  await new Promise<void>((resolve, reject) => {
    owner.stdout.once("data", () => resolve())
    owner.once("exit", (code, signal) => reject(new Error(`the owner ended by itself (${code ?? signal}): ${errors}`)))
  })
  await pause(delayMs)
  await before(owner.pid!, directory)
  const running = Specimens.alive(directory).filter(({ pid }) => pid !== owner.pid).length
  owner.kill("SIGKILL")
  await new Promise<void>((resolve) => owner.once("exit", () => resolve()))
  const left = await survivors(directory)
  Specimens.end(left)
  fs.rmSync(directory, { recursive: true, force: true })
  return { delayMs, running, survivors: left }
}
