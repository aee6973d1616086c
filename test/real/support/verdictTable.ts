/** What the verdict tables of all CLIs are made of. */
import type { Failure, Verdict } from "@turnpike/contract"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Bench, Told } from "./turnpikeRun.ts"

export interface Cell {
  /** Null where the run was refused before it began. */
  readonly reason: Verdict.TerminalReason | null
  readonly success: boolean
  readonly exit: 0 | 1 | 3 | 130 | 143
  readonly error: Failure.FailureCode | null
}

export interface Row {
  readonly name: string
  readonly cell: Cell
  /** What the CLI does not tell, or tells otherwise, so that the cell is what it is; and the recording that shows it, under test/fixtures. */
  readonly hidden?: { readonly what: string; readonly recording: string }
  /** Brings it about, and answers the run that is judged. */
  readonly play: (bench: Bench) => Promise<Told>
  /** What else must hold. */
  readonly also?: (told: Told, bench: Bench) => void | Promise<void>
}

export const success: Cell = { reason: "success", success: true, exit: 0, error: null }
export const failed = (error: Failure.FailureCode): Cell => ({ reason: "adapter_error", success: false, exit: 3, error })
export const refused = (error: Failure.FailureCode): Cell => ({ reason: null, success: false, exit: 1, error })
export const cancelled = (mode: "graceful" | "hard", exit: 130 | 143 = 130): Cell => ({
  reason: `${mode}_cancel`,
  success: false,
  exit,
  error: "CANCELLED"
})

export const summary = (told: Told): string => told.result?.result.summary ?? ""
export const answerTo = (...prompts: ReadonlyArray<string>): string =>
  `I was sent ${prompts.length} prompt${prompts.length === 1 ? "" : "s"}: ${JSON.stringify(prompts)}`

export const firstText = (then: (signal: (name: NodeJS.Signals) => void) => void) => {
  let done = false
  return (event: { readonly type: string }, signal: (name: NodeJS.Signals) => void) => {
    if (done || event.type !== "text_delta") return
    done = true
    then(signal)
  }
}

/** The files below a directory in which a CLI keeps what was said. */
export const historiesIn = (directory: string): ReadonlyArray<string> =>
  fs.existsSync(directory)
    ? fs.readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".jsonl")).map((file) => path.join(directory, file))
    : []

/** Whether a text stands in the histories below a directory. */
export const isWritten = (directory: string, text: string): boolean =>
  historiesIn(directory).some((file) => fs.readFileSync(file, "utf8").includes(text))

/**
 * Does something once `written` stands in the histories below a directory. A CLI
 * writes a prompt down a moment after it has begun to answer; what it has not
 * written, no resumption can find.
 */
export const afterWritten = (directory: string, written: string, then: () => void): void => {
  const deadline = Date.now() + 20_000
  const look = () => {
    if (isWritten(directory, written) || Date.now() > deadline) then()
    else setTimeout(look, 10)
  }
  look()
}

/** What a run came to, in the table's terms. */
export const cellOf = (told: Told, refusal: string | undefined): unknown =>
  told.result === undefined
    ? { reason: null, success: false, exit: told.exit, error: refusal ?? null }
    : {
      reason: told.result.reason,
      success: told.result.result.success,
      exit: told.exit,
      error: told.result.error?.code ?? null
    }

/** The table as the documentation has it. `cli` is the CLI's name. */
export const toMarkdown = (cli: string, rows: ReadonlyArray<Row>): string =>
  [
    `| what happens | reason | success | exit | error | what ${cli} hides |`,
    "|---|---|---|---|---|---|",
    ...rows.map(({ cell, hidden, name }) => {
      const shown = hidden === undefined ? "" : `${hidden.what} (\`${hidden.recording}\`)`
      return `| ${name.replaceAll("|", "\\|")} | ${cell.reason ?? "refused"} | ${cell.success ? "yes" : "no"} | ${cell.exit} | ${
        cell.error ?? ""
      } | ${shown} |`
    })
  ].join("\n")
