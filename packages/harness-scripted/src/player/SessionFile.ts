/**
 * What a scripted agent remembers of a session: one JSON file for each, in a
 * directory of the dialect's choice. Written before a prompt is played, so that
 * a killed agent still knows what it was asked.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { writeFileWhole } from "./Children.ts"

export interface Remembered {
  readonly id: string
  readonly prompts: ReadonlyArray<string>
}

/** Node's own recursive `mkdir` never returns where a file system refuses new entries with ENOENT, such as `/proc`. */
const makeDirectory = (directory: string): void => {
  if (fs.existsSync(directory)) return
  if (path.dirname(directory) !== directory) makeDirectory(path.dirname(directory))
  try {
    fs.mkdirSync(directory)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
  }
}

const fileOf = (directory: string, id: string): string => path.join(directory, `${encodeURIComponent(id)}.json`)

/** Reads a session; `undefined` where there is none. */
export const read = (directory: string, id: string): Remembered | undefined => {
  const file = fileOf(directory, id)
  if (!fs.existsSync(file)) return undefined
  return JSON.parse(fs.readFileSync(file, "utf8")) as Remembered
}

export const write = (directory: string, session: Remembered): void => {
  makeDirectory(path.resolve(directory))
  writeFileWhole(fileOf(directory, session.id), JSON.stringify({ id: session.id, prompts: session.prompts }))
}
