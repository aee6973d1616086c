/** The tables of what the store of sessions costs. */
import * as Append from "../StoreAppend.ts"
import * as Lag from "../StoreLag.ts"
import * as Read from "../StoreRead.ts"
import * as Start from "../StoreStart.ts"
import * as Surface from "../Surface.ts"
import { cell, judging, type Read as Find, table } from "./Tables.ts"

export const goals = (of: Find): ReadonlyArray<ReadonlyArray<string>> => {
  const judged = judging(of)
  return [
    judged("append", `${Append.names.store}: appended`, "≥ 500 000 /s"),
    judged("append", `${Append.names.store}: size`, "≤ 25 B"),
    judged("read", `${Read.logs.long.name}: its last 50, p50`, "≤ 0.25 ms"),
    judged("read", `${Read.logs.long.name}: all of it`, "≤ 2 s"),
    judged("sessions", "10 000 sessions: opened and listed by a new process", "≤ 50 ms"),
    judged("sessions", "10 000 sessions: heap that listing them keeps in use", "constant: ≤ 1 MiB"),
    judged("sessions", "10 000 sessions held in one process: memory", "≤ 50 KiB"),
    judged("messages", Surface.growth, "flat: ≤ 1.5 ×"),
    judged("lag", `${Lag.names.sqlite}: p99`, "≤ 10 ms", "the event loop is late while a session is written: p99")
  ]
}

export const tables = (of: Find): Readonly<Record<string, string>> => {
  const cells = (benchmark: string, name: string, whats: ReadonlyArray<string>) => whats.map((what) => cell(of(benchmark, `${name}: ${what}`)))
  const some = (benchmark: string, names: ReadonlyArray<string>) => table(["what", "measured"], names.map((name) => [name, cell(of(benchmark, name))]))
  const { postgres, ...ours } = Append.names
  return {
    append: table(["way", "events a second", "ratio to node:sqlite bare", "CPU an event", "bytes an event"], [
      ...Object.values(ours).map((name) => [name, ...cells("append", name, ["appended", "ratio to node:sqlite bare", "CPU", "size"])]),
      [postgres, ...cells("append", postgres, ["appended", "ratio to node:sqlite bare", "CPU"]), ""]
    ]),
    disk: some("append", ["the disk alone: a written page and its sync", "JSON of the events"]),
    read: table(
      ["log", "all of it", "the first time in a process", "an event", "opened to go on with it", "its last 50, p50", "p99"],
      Object.values(Read.logs).map(({ name }) => [
        name,
        ...cells("read", name, ["all of it", "all of it, the first time in a process", "an event", "opened to go on with it", "its last 50, p50", "its last 50, p99"])
      ])
    ),
    sessions: some("sessions", [
      "10 000 sessions: opened and listed by a new process",
      "10 000 sessions: listed again",
      "1 000 sessions: opened and listed by a new process",
      "10 000 sessions: read by node:sqlite alone, unchecked",
      "10 000 sessions: ratio to node:sqlite alone",
      "10 000 sessions: heap that listing them keeps in use",
      "1 000 sessions: heap that listing them keeps in use",
      "10 000 sessions: resident memory that listing them takes",
      "10 000 sessions held in one process: memory",
      "10 000 sessions held in one process: of the heap in use",
      "10 000 sessions held in one process: CPU while nothing happens",
      "10 000 sessions held in one process: all open after"
    ]),
    messages: table(
      ["log", "one turn more", "all messages as an array", "the whole log again"],
      Surface.lengths.map((events) => [Surface.nameOf(events), ...cells("messages", Surface.nameOf(events), ["one turn more", "all messages as an array", "the whole log again"])])
    ),
    lag: table(
      ["where the pieces go", "p50", "p99", "longest", "CPU"],
      Object.values(Lag.names).map((name) => [name, ...cells("lag", name, ["p50", "p99", "longest", "CPU"])])
    ),
    start: table(
      ["what", "CPU", "wall", "ratio of CPU"],
      ([["first"], ["run", "first"], ["empty"], ["version", "empty"]] as const).map(([name, to]) => [
        Start.names[name],
        ...cells("start", Start.names[name], ["CPU", "wall"]),
        to === undefined ? "1" : cell(of("start", `${Start.names[name]}: ratio of CPU to ${Start.names[to]}`))
      ])
    )
  }
}
