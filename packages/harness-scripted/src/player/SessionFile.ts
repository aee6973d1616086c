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

const fileOf = (directory: string, id: string): string => path.join(directory, `${encodeURIComponent(id)}.json`)

/** Reads a session; `undefined` where there is none. */
export const read = (directory: string, id: string): Remembered | undefined => {
  const file = fileOf(directory, id)
  if (!fs.existsSync(file)) return undefined
  return JSON.parse(fs.readFileSync(file, "utf8")) as Remembered
}

export const write = (directory: string, session: Remembered): void => {
  fs.mkdirSync(directory, { recursive: true })
  writeFileWhole(fileOf(directory, session.id), JSON.stringify({ id: session.id, prompts: session.prompts }))
}
