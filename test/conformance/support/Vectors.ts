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

/** The folders that are there, for a test that none is left out. */
export const allFolders = folders
