/**
 * Sessions as a list shows them: a table for people, and objects for programs.
 *
 * Pure. It is told some at a time, and keeps none; the width of the first column
 * follows from the first ones.
 */
import type { Style } from "@turnpike/channel-terminal"
import type { SessionStore } from "@turnpike/kernel"
import * as Column from "./Column.ts"
import * as Moment from "./Moment.ts"

/** A session in the words of the wire. Absent holders are null. */
export const toJson = ({ events, header, holder, pending, turns, updated }: SessionStore.Summary) => ({
  id: header.id,
  ...(header.title === undefined ? {} : { title: header.title }),
  harness: header.harness,
  cwd: header.cwd,
  created: header.created,
  updated,
  events,
  turns,
  pending,
  holder: holder === undefined ? null : { name: holder.name, since: holder.since },
  ...(header.parent === undefined ? {} : { parent: header.parent })
})

export interface SessionList {
  /** The next sessions, as lines with their line feeds. */
  readonly rows: (sessions: ReadonlyArray<SessionStore.Summary>, now: number) => string
}

/** As wide as a UUID. A longer id is cut where the width of a line is bounded. */
const maxIdColumns = 36
const changedColumns = 10
const harnessColumns = 10

/** Begins a table for lines of at most so many columns; `Infinity` where nothing shall be cut. */
export const make = (columns: number, style: Style.Style): SessionList => {
  let idColumns: number | undefined

  const row = (id: string, changed: string, turns: string, waiting: string, harness: string, about: string): string => {
    const line = `${id}  ${changed.padEnd(changedColumns)} ${turns.padStart(5)} ${waiting.padStart(5)}  ${harness}  ${about}`.trimEnd()
    return Number.isFinite(columns) ? Column.cut(line, columns) : line
  }

  return {
    rows: (sessions, now) => {
      if (sessions.length === 0) return ""
      const bounded = Number.isFinite(columns)
      const isFirst = idColumns === undefined
      const width = idColumns ??= Math.min(maxIdColumns, Math.max(2, ...sessions.map(({ header }) => header.id.length)))
      const lines = sessions.map(({ header, holder, pending, turns, updated }) => {
        const id = bounded ? Column.left(header.id, width) : header.id.padEnd(width)
        const about = [...(holder === undefined ? [] : [`[${holder.name}]`]), ...(header.title === undefined ? [] : [header.title]), header.cwd].join(" · ")
        return row(id, Moment.ago(updated, now), String(turns), pending === 0 ? "" : String(pending), Column.left(header.harness, harnessColumns), Column.fit(about, columns))
      })
      const heading = row("ID".padEnd(width), "CHANGED", "TURNS", "WAIT", "HARNESS".padEnd(harnessColumns), "[HELD BY] TITLE · DIRECTORY")
      return `${[...(isFirst ? [style.paint("bold", heading)] : []), ...lines].join("\n")}\n`
    }
  }
}
