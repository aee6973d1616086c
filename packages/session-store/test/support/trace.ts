/** What a program asked of the system, as strace saw it. */

export interface Call {
  readonly name: string
  /** Which thread called, by its id. */
  readonly thread: string
  /** What its first argument is: the file's path, or the descriptor where it is no file. */
  readonly target: string
  readonly rest: string
  readonly result: string
}

/** Reads lines of `strace -f -y`. Calls that were cut in two by another thread are put together. */
export const callsOf = (text: string): ReadonlyArray<Call> => {
  const begun = new Map<string, string>()
  const calls: Array<Call> = []
  for (const line of text.split("\n")) {
    const [, thread = "", what = ""] = /^(\d+)\s+(.*)$/u.exec(line) ?? []
    if (what.endsWith("<unfinished ...>")) {
      begun.set(thread, what.slice(0, -"<unfinished ...>".length))
      continue
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/u.exec(what)
    const whole = resumed === null ? what : `${begun.get(thread) ?? ""}${resumed[1]}`
    const parts = /^(\w+)\((\d+)(?:<([^>]*)>)?(.*)\)\s+= (.*)$/u.exec(whole)
    if (parts === null) continue
    const [, name = "", descriptor = "", path, rest = "", result = ""] = parts
    calls.push({ name, thread, target: path ?? descriptor, rest, result })
  }
  return calls
}
