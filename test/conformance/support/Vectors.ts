/**
 * The files of `test/vectors`, read as they are.
 */
import type { Contracts } from "@turnpike/contract"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..")
export const directory = path.join(root, "test/vectors")

export interface Vector {
  readonly title: string
  readonly given: { readonly contract: Contracts.Name; readonly input?: unknown; readonly text?: string }
  readonly then: {
    readonly verdict: "valid" | "invalid"
    readonly reason?: string
    readonly json_schema?: "valid"
    readonly difference?: string
  }
}

export interface VectorFile {
  /** From `test/vectors`, such as `verdict/an-unknown-cause-is-refused.json`. */
  readonly name: string
  readonly path: string
  readonly vector: Vector
}

export interface StreamVector {
  readonly title: string
  readonly given: { readonly result: "stream" | "file" | "either" }
  readonly then: { readonly violations: ReadonlyArray<{ readonly line: number; readonly rule: string }> }
}

export interface StreamFile {
  readonly name: string
  readonly text: string
  readonly vector: StreamVector
}

/** The file name that belongs to a title. */
export const fileNameOf = (title: string): string =>
  title.toLowerCase().replaceAll("'", "").replaceAll(/[^a-z0-9]+/gu, "-").replaceAll(/^-|-$/gu, "")

const folders = (): ReadonlyArray<string> =>
  fs.readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort()

const readJson = (file: string): unknown => JSON.parse(fs.readFileSync(file, "utf8"))

/** All vectors of single values. Their shape is checked by the conformance suite against their own schema. */
export const vectors = (contracts: ReadonlyArray<string>): ReadonlyArray<VectorFile> =>
  folders().filter((folder) => contracts.includes(folder)).flatMap((folder) =>
    fs.readdirSync(path.join(directory, folder)).sort().map((file) => {
      const full = path.join(directory, folder, file)
      return { name: `${folder}/${file}`, path: full, vector: readJson(full) as Vector }
    })
  )

/** All vectors of streams. */
export const streams = (): ReadonlyArray<StreamFile> =>
  fs.readdirSync(path.join(directory, "stream")).filter((file) => file.endsWith(".jsonl")).sort().map((file) => {
    const full = path.join(directory, "stream", file)
    return {
      name: `stream/${file}`,
      text: fs.readFileSync(full, "utf8"),
      vector: readJson(full.replace(/\.jsonl$/u, ".expected.json")) as StreamVector
    }
  })

export interface LogVector {
  readonly title: string
  readonly then:
    | {
      readonly verdict: "loads"
      readonly events: number
      /** In golden logs: number, trigger and verdict of each turn. */
      readonly turns?: ReadonlyArray<readonly [number, string, string]>
      /** In golden logs: `seq`, role and text of each message that the model is shown. */
      readonly messages?: ReadonlyArray<readonly [number, string, string]>
    }
    | {
      readonly verdict: "repairs"
      readonly cut_at: number
      readonly append: ReadonlyArray<unknown>
      readonly requeue: ReadonlyArray<string>
    }
    | { readonly verdict: "refuses"; readonly line: number; readonly code: string; readonly rule?: string }
}

export interface LogFile {
  readonly name: string
  readonly bytes: Uint8Array
  readonly vector: LogVector
}

/** All logs of a folder of `session-log`: its own by `.`, and those of released formats by `golden`. */
export const logs = (folder: "." | "golden"): ReadonlyArray<LogFile> => {
  const within = path.join(directory, "session-log", folder)
  return fs.readdirSync(within).filter((file) => file.endsWith(".expected.json")).sort().map((file) => {
    const stem = file.replace(/\.expected\.json$/u, "")
    return {
      name: path.posix.join("session-log", folder, `${stem}.jsonl`),
      bytes: new Uint8Array(fs.readFileSync(path.join(within, `${stem}.jsonl`))),
      vector: readJson(path.join(within, file)) as LogVector
    }
  })
}

/** The folders that are there, for a test that none is left out. */
export const allFolders = folders
