/**
 * The right to use a session, between processes.
 *
 * A lock is a file `lock.N` in the session's directory that names its holder.
 * Whoever wants the session makes the file with the next higher number, which
 * the file system lets one process do, and looks again: a lock of a living
 * process that is there as well means to step back. So of several that find a
 * dead holder's lock exactly one gets it, and no process ever removes the lock
 * of a living one.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { randomUUID } from "node:crypto"
import * as Holder from "./Holder.ts"
import * as NewDirectory from "./NewDirectory.ts"

export type Outcome =
  | { readonly _tag: "Held"; readonly release: () => void }
  | { readonly _tag: "Busy"; readonly holder: Holder.Holder; readonly life: Holder.Life; readonly file: string }
  /** A lock that nobody can read: it is left alone. */
  | { readonly _tag: "Unreadable"; readonly file: string }

interface Lock {
  readonly file: string
  readonly number: number
  readonly holder: Holder.Holder | undefined
}

const read = (file: string): string | undefined => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw cause
  }
}

/** How often a taker begins again when others came between; each time somebody else got further. */
const attempts = 100

/**
 * All locks as they were at one moment: where one went while it was read, the
 * look is repeated. Half a look could give a number away twice.
 */
const list = (directory: string): ReadonlyArray<Lock> => {
  for (let look = 0; look < attempts; look++) {
    const locks: Array<Lock> = []
    let isWhole = true
    for (const name of fs.readdirSync(directory)) {
      const number = /^lock\.([0-9]{1,15})$/.exec(name)?.[1]
      if (number === undefined) continue
      const file = path.join(directory, name)
      const text = read(file)
      if (text === undefined) isWhole = false
      else locks.push({ file, number: Number(number), holder: Holder.parse(text) })
    }
    if (isWhole) return locks
  }
  throw new Error(`${directory} is fought over: its locks changed ${attempts} times while they were read`)
}

const errorCode = (cause: unknown): string | undefined => (cause as NodeJS.ErrnoException).code

/** One attempt. `undefined` when somebody else came between. */
const attempt = (directory: string, me: Holder.Holder): Outcome | undefined => {
  const found = list(directory)
  for (const { file, holder } of found) {
    if (holder === undefined) return { _tag: "Unreadable", file }
    const life = Holder.lifeOf(holder, me)
    if (life !== "dead") return { _tag: "Busy", holder, life, file }
  }
  const number = Math.max(0, ...found.map((lock) => lock.number)) + 1
  const file = path.join(directory, `lock.${number}`)
  // Written elsewhere first, so that a lock is never seen half written.
  const temporary = path.join(directory, `.lock.${randomUUID()}.tmp`)
  const descriptor = fs.openSync(temporary, "wx", 0o600)
  try {
    fs.writeFileSync(descriptor, Holder.format(me))
    fs.fsyncSync(descriptor)
    fs.linkSync(temporary, file)
  } catch (cause) {
    if (errorCode(cause) === "EEXIST") return undefined
    throw cause
  } finally {
    fs.closeSync(descriptor)
    fs.rmSync(temporary, { force: true })
  }
  const release = () => fs.rmSync(file, { force: true })
  const others = list(directory).filter((lock) => lock.number !== number)
  const isContested = others.some((lock) =>
    lock.number > number || lock.holder === undefined || Holder.lifeOf(lock.holder, me) !== "dead"
  )
  if (isContested) {
    release()
    return undefined
  }
  for (const stale of others) fs.rmSync(stale.file, { force: true })
  return { _tag: "Held", release }
}

/**
 * Takes the lock, or says who has it. Makes the directory where there is none.
 * Throws the system's error when the directory cannot be used.
 */
export const acquire = (directory: string, me: Holder.Holder = Holder.self()): Outcome => {
  for (let round = 0; round < attempts; round++) {
    try {
      NewDirectory.make(directory)
      const outcome = attempt(directory, me)
      if (outcome !== undefined) return outcome
    } catch (cause) {
      // The directory of a session that was never used goes with its last user.
      if (errorCode(cause) !== "ENOENT") throw cause
    }
  }
  throw new Error(`${directory} is fought over: ${attempts} attempts to lock it were overtaken`)
}
