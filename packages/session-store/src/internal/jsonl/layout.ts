/**
 * Where what stands in a directory of sessions.
 *
 * ```text
 * store.json                    says whose the directory is, and in which format
 * owners/OWNER.json             one a process that holds sessions: until when its leases run
 * new/OWNER.…                   what is being made; renamed once it is whole
 * gone/OWNER.…                  what is being deleted
 * sessions/ID/header.json       what the session is: written once, whole or not at all
 * sessions/ID/log.0.jsonl       the log as the session began: empty, or what a fork or an export brought
 * sessions/ID/log.N.jsonl       the log of the N-th writer
 * sessions/ID/inbox.jsonl       the inbox, written by anybody
 * ```
 */
import { Scalars } from "@turnpike/contract"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as path from "node:path"

const decodeId = Schema.decodeUnknownResult(Scalars.SessionId)

export interface Layout {
  readonly directory: string
  readonly store: string
  readonly owners: string
  readonly making: string
  readonly gone: string
  readonly sessions: string
}

export const layoutOf = (directory: string): Layout => ({
  directory,
  store: path.join(directory, "store.json"),
  owners: path.join(directory, "owners"),
  making: path.join(directory, "new"),
  gone: path.join(directory, "gone"),
  sessions: path.join(directory, "sessions")
})

/**
 * A directory's name for an id. Some file systems take `A` and `a` for one letter:
 * the letters are small, and those that are not stand behind a `~`, as the bits of a
 * number in hexadecimal.
 */
export const nameOf = (id: Scalars.SessionId): string => {
  let capitals = 0n
  for (const [index, letter] of [...id].entries()) if (letter >= "A" && letter <= "Z") capitals |= 1n << BigInt(index)
  return capitals === 0n ? id : `${id.toLowerCase()}~${capitals.toString(16)}`
}

/** The id that a directory's name stands for; `undefined` for other names. */
export const idOf = (name: string): Scalars.SessionId | undefined => {
  const [, letters = "", bits = "0"] = /^([a-z0-9][a-z0-9_.-]*)(?:~([0-9a-f]{1,32}))?$/u.exec(name) ?? []
  const capitals = BigInt(`0x${bits}`)
  const id = [...letters].map((letter, index) => (capitals >> BigInt(index)) & 1n ? letter.toUpperCase() : letter).join("")
  const found = decodeId(id)
  return Result.isSuccess(found) && nameOf(found.success) === name ? found.success : undefined
}

/** The files of one session. */
export interface Place {
  readonly directory: string
  readonly header: string
  readonly inbox: string
  readonly segment: (generation: number) => string
}

export const placeIn = (directory: string): Place => ({
  directory,
  header: path.join(directory, "header.json"),
  inbox: path.join(directory, "inbox.jsonl"),
  segment: (generation) => path.join(directory, `log.${generation}.jsonl`)
})

export const placeOf = (layout: Layout, id: Scalars.SessionId): Place => placeIn(path.join(layout.sessions, nameOf(id)))

/** The generation whose log a file is; `undefined` for other files. */
export const generationOf = (name: string): number | undefined => {
  const [, digits] = /^log\.(0|[1-9]\d{0,14})\.jsonl$/u.exec(name) ?? []
  return digits === undefined ? undefined : Number(digits)
}
