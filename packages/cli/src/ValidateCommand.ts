/**
 * `turnpike validate`: checks JSON or JSONL against a contract.
 */
import { Contracts, StreamRules } from "@turnpike/contract"
import { LineInput } from "@turnpike/channel-terminal"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import { type Given, isOn, one, quote } from "./CommandLine.ts"
import * as Composition from "./Composition.ts"
import * as InputText from "./InputText.ts"
import * as Program from "./Program.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import { print, unknownContract } from "./SchemaCommand.ts"

/** Contracts that stand one a line in what Turnpike writes. */
const byLine: ReadonlyArray<string> = ["agent-run-event", "session-event", "turn-event"]

/** A fault and the line that it is on; 0 for the whole. */
interface Finding {
  readonly line: number
  readonly message: string
}

/** How many faults are told; the rest is counted. */
const most = 100

interface Report {
  readonly checked: number
  readonly faults: number
}

/** Tells faults as they are found. */
const teller = (name: string) => {
  let faults = 0
  return {
    fault: (line: number, message: string) => {
      faults++
      if (faults <= most) Composition.say(`${name}:${line === 0 ? "" : `${line}:`} ${message}`)
    },
    end: () => {
      if (faults > most) Composition.say(`${name}: and ${faults - most} more`)
      return faults
    }
  }
}

const open = (file: string): Effect.Effect<NodeJS.ReadableStream & AsyncIterable<unknown>, Refusal, Scope.Scope> =>
  file === InputText.standardInput
    ? Effect.succeed(process.stdin)
    : Effect.acquireRelease(Effect.sync(() => fs.createReadStream(file)), (stream) => Effect.sync(() => stream.destroy()))

const shown = (file: string) => file === InputText.standardInput ? "stdin" : file

/** Finds what no decoder sees: a field that an object of this JSON has twice, so that one of its values would be lost. */
const repeated = (text: string): ReadonlyArray<Finding> => {
  try {
    JSON.parse(text)
  } catch {
    // It is told already that this is no JSON.
    return []
  }
  const found = Contracts.repeatedKey(text)
  return found === undefined ? [] : [{ line: found.line, message: `the field ${quote(found.key)} stands there a second time` }]
}

const lines = (
  file: string,
  check: (line: string) => ReadonlyArray<Finding>,
  end: () => ReadonlyArray<Finding>
): Effect.Effect<Report, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    const stream = yield* open(file)
    const input = LineInput.make(stream as fs.ReadStream)
    const tell = teller(shown(file))
    let checked = 0
    while (true) {
      const line: LineInput.Line = yield* Effect.mapError(input.next, (error) =>
        refuse("FILE_UNREADABLE", `${InputText.shown(file)} cannot be read: ${InputText.reasonOf(error.reason._tag === "Io" ? error.reason.cause : error)}`))
      if (line._tag === "End") break
      checked++
      const found = line._tag === "Bad"
        ? [{ line: line.number, message: line.why }]
        : [...check(line.text), ...repeated(line.text).map(({ message }) => ({ line: line.number, message }))]
      for (const { line: number, message } of found) tell.fault(number, message)
      if (line._tag === "Bad") check("")
    }
    for (const { line, message } of end()) tell.fault(line, message)
    return { checked, faults: tell.end() }
  })

const whole = (name: Contracts.Name, file: string): Effect.Effect<Report, Refusal> =>
  Effect.gen(function*() {
    const text = yield* InputText.read(file)
    const tell = teller(shown(file))
    for (const fault of Contracts.validateText(name, text, { lines: false }).faults) tell.fault(fault.line, placed(fault))
    for (const { line, message } of repeated(text)) tell.fault(line, message)
    return { checked: 1, faults: tell.end() }
  })

const placed = ({ message, path }: Contracts.Fault): string => path === "" ? message : `${path}: ${message}`

const command = (given: Given, [name = "", file = InputText.standardInput]: ReadonlyArray<string>): Effect.Effect<number, Refusal, Scope.Scope> =>
  Effect.gen(function*() {
    if (!Contracts.isName(name)) return yield* unknownContract(name, Contracts.names)
    const isStream = isOn(given, "stream")
    const result = one(given, "result")
    if (isStream && name !== "agent-run-event") {
      return yield* refuse("USAGE", `--stream is for agent-run-event, not for ${name}`, { remedy: "Leave out --stream, or check agent-run-event." })
    }
    if (result !== undefined && !isStream) {
      return yield* refuse("USAGE", "--result says how a stream is checked, and there is no --stream", { remedy: "Add --stream, or leave out --result." })
    }
    const isByLine = isOn(given, "lines") || /\.(jsonl|ndjson)$/.test(file) || (byLine.includes(name) && !file.endsWith(".json"))
    let report: Report
    if (isStream) {
      const checker = StreamRules.make({ result: (result ?? "either") as StreamRules.Options["result"] })
      const told = (violations: ReadonlyArray<StreamRules.Violation>) =>
        violations.map(({ line, message, rule }) => ({ line, message: `${rule}: ${message}` }))
      report = yield* lines(file, (line) => told(checker.line(line)), () => told(checker.end()))
    } else if (isByLine) {
      const check = Contracts.lineChecker(name)
      report = yield* lines(file, (line) => check(line).map((fault) => ({ line: fault.line, message: placed(fault) })), () => [])
    } else {
      report = yield* whole(name, file)
    }
    if (report.checked === 0 && report.faults === 0) {
      Composition.say(`${shown(file)}: there is nothing to check`)
      return 3
    }
    if (report.faults > 0) return 3
    const isTaken = yield* print(`${shown(file)}: valid ${name}${isByLine || isStream ? `, ${report.checked} ${report.checked === 1 ? "line" : "lines"}` : ""}\n`)
    return isTaken ? 0 : 1
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => Program.run(command(given, positionals))
