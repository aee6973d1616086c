import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent, SessionHeader } from "@turnpike/contract"
import { Scalars } from "@turnpike/contract"
import * as Result from "effect/Result"
import { LogLine, LogScan, LogState } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"

const bytesOf = (text: string) => new TextEncoder().encode(text)

const header: SessionHeader.SessionHeader = {
  type: "session",
  format: 1,
  id: Scalars.SessionId.make("s-1"),
  created: 1790000000000,
  harness: "scripted",
  cwd: "/project"
}

const linesOf = (events: ReadonlyArray<SessionEvent.SessionEvent>) => [header, ...events].map((record) => `${LogLine.encode(record)}\n`)
const fileOf = (events: ReadonlyArray<SessionEvent.SessionEvent>) => bytesOf(linesOf(events).join(""))

/** Compared as what they are: element by element would take minutes over all cuts. */
const isSame = (one: Uint8Array, other: Uint8Array) => Buffer.from(one).equals(other)
const isBeginOf = (some: ReadonlyArray<SessionEvent.SessionEvent>, all: ReadonlyArray<SessionEvent.SessionEvent>) =>
  JSON.stringify(some) === JSON.stringify(all.slice(0, some.length))

const joined = (one: Uint8Array, other: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(one.length + other.length)
  bytes.set(one)
  bytes.set(other, one.length)
  return bytes
}

/** The file after what the verdict asks for. */
const repaired = (bytes: Uint8Array, verdict: LogScan.Verdict): Uint8Array => {
  assert.strictEqual(verdict.verdict, "repairs")
  if (verdict.verdict !== "repairs") return bytes
  return joined(bytes.subarray(0, verdict.cutAt), bytesOf(verdict.closers.map((event) => `${LogLine.encode(event)}\n`).join("")))
}

const closed = Log.log([...Log.turn(1, "first", Log.call("c"), Log.result("c"), Log.answer("ok")), ...Log.turn(2, "second")])
const open = Log.log([
  ...Log.turn(1, "first 🚂"),
  Log.turnStart(2),
  Log.claimed(2, "r"),
  Log.stepStart(),
  Log.user("second", "r"),
  Log.call("c"),
  Log.ask("q", "c"),
  Log.chunk("x")
])

/** A verdict in one line. */
const word = (bytes: Uint8Array): string => {
  const { verdict } = LogScan.scan(bytes)
  switch (verdict.verdict) {
    case "loads":
      return "loads"
    case "repairs":
      return `repairs at ${verdict.cutAt}: ${verdict.closers.map(({ type }) => type).join(" ")}`
    case "refuses":
      return `refuses ${verdict.line} ${verdict.code}`
  }
}

/** The file with its lines changed. `index` 0 is the header. */
const changed = (events: ReadonlyArray<SessionEvent.SessionEvent>, change: (lines: Array<string>) => void): Uint8Array => {
  const lines = linesOf(events)
  change(lines)
  return bytesOf(lines.join(""))
}

describe("a log that is whole", () => {
  it("loads with its header and events", () => {
    assert.deepStrictEqual(LogScan.scan(fileOf(closed)), { header, events: closed, verdict: { verdict: "loads" } })
    assert.deepStrictEqual(LogScan.scan(fileOf([])), { header, events: [], verdict: { verdict: "loads" } })
  })

  it("is repaired where its last turn is open, and loads then", () => {
    const bytes = fileOf(open)
    const { events, verdict } = LogScan.scan(bytes)
    const state = Result.getOrThrow(LogState.all(LogState.empty(), open))
    assert.deepStrictEqual(events, open)
    assert.deepStrictEqual(verdict, { verdict: "repairs", cutAt: bytes.length, closers: LogState.closers(state), unspent: [] })
    const after = repaired(bytes, verdict)
    assert.deepStrictEqual(LogScan.scan(after), { header, events: [...open, ...LogState.closers(state)], verdict: { verdict: "loads" } })
  })

  it("goes on from another file's end without a header", () => {
    const scanner = LogScan.make(Result.getOrThrow(LogState.all(LogState.empty(), closed.slice(0, 9))))
    for (const event of closed.slice(9)) {
      assert.deepStrictEqual(scanner.line(bytesOf(LogLine.encode(event))), { _tag: "Event", event })
    }
    assert.deepStrictEqual(scanner.end(new Uint8Array()), { verdict: "loads" })
    assert.strictEqual(scanner.state().next, closed.length)
  })
})

describe("a log that is cut", () => {
  it("at any byte loses nothing before the cut but the line that it is in, and is whole again after one repair", () => {
    for (const events of [closed, open, Log.random(7, 25)]) {
      const bytes = fileOf(events)
      const ends = [...bytes.keys()].filter((at) => bytes[at] === 10).map((at) => at + 1)
      for (let length = 0; length < bytes.length; length++) {
        const cut = bytes.subarray(0, length)
        const scan = LogScan.scan(cut)
        const whole = ends.filter((end) => end <= length).length
        if (whole === 0) {
          assert.strictEqual(word(cut), "refuses 1 SESSION_DAMAGED")
          continue
        }
        assert.strictEqual(scan.events.length, whole - 1)
        assert.isTrue(isBeginOf(scan.events, events), `cut at ${length}`)
        if (scan.verdict.verdict === "loads") {
          assert.strictEqual(length, ends[whole - 1])
          assert.isUndefined(Result.getOrThrow(LogState.all(LogState.empty(), scan.events)).open)
          continue
        }
        const after = repaired(cut, scan.verdict)
        assert.strictEqual(word(after), "loads", `cut at ${length}`)
        assert.isTrue(isSame(after.subarray(0, ends[whole - 1]), bytes.subarray(0, ends[whole - 1])), `cut at ${length}`)
        // The same repair again, from the same bytes.
        assert.isTrue(isSame(repaired(cut, LogScan.scan(cut).verdict), after), `cut at ${length}`)
      }
    }
  })

  it("may be cut in the middle of its repair, and comes to the same end", () => {
    const bytes = fileOf(open)
    const whole = repaired(bytes, LogScan.scan(bytes).verdict)
    for (let length = bytes.length; length < whole.length; length++) {
      const half = whole.subarray(0, length)
      const after = repaired(half, LogScan.scan(half).verdict)
      assert.strictEqual(word(after), "loads")
      const { events } = LogScan.scan(after)
      assert.deepStrictEqual(events.at(-1)?.data, { turn: 2, verdict: { type: "interrupted" } })
      assert.deepStrictEqual(events.filter(({ type }) => type === "tool/result" || type === "permission/decision").length, 2)
    }
  })
})

describe("a log in which one bit is flipped", () => {
  it.each([["closed", closed], ["open", open]] as const)("is found out, wherever the bit is, in a log that is %s", (_, events) => {
    const bytes = fileOf(events)
    const before = LogScan.scan(bytes)
    const silent: Array<string> = []
    for (let at = 0; at < bytes.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const flipped = bytes.slice()
        flipped[at]! ^= 1 << bit
        const after = LogScan.scan(flipped)
        const isFound = after.verdict.verdict === "refuses" ||
          (after.verdict.verdict === "repairs" && after.verdict.cutAt < bytes.length)
        if (!isFound && JSON.stringify(after) !== JSON.stringify(before)) silent.push(`byte ${at} bit ${bit}`)
        // What is kept is what was written.
        if (isFound && !isBeginOf(after.events, events)) silent.push(`byte ${at} bit ${bit} in an event that is kept`)
      }
    }
    assert.deepStrictEqual(silent, [])
  })

  it("is refused wherever the bit is in the line that ends the last turn, its line feed among them", () => {
    for (const verdict of [Log.completed, { type: "aborted", cause: "user", mode: "hard" }] as const) {
      const bytes = fileOf(Log.log([...Log.turn(1, "first"), ...Log.turn(2, "second").slice(0, -1), Log.turnEnd(2, verdict)]))
      const from = bytes.lastIndexOf(10, bytes.length - 2) + 1
      const silent: Array<string> = []
      for (let at = from; at < bytes.length; at++) {
        for (let bit = 0; bit < 8; bit++) {
          const flipped = bytes.slice()
          flipped[at]! ^= 1 << bit
          if (word(flipped) !== "refuses 11 SESSION_DAMAGED") silent.push(`byte ${at - from} bit ${bit}: ${word(flipped)}`)
        }
      }
      assert.deepStrictEqual(silent, [])
    }
  })

  it("puts no prompt back whose turn has gone on: where the bit is in what begins the turn, the log is refused", () => {
    for (const gone of [open, open.slice(0, 10)]) {
      const lines = linesOf(gone)
      const bytes = fileOf(gone)
      const wrong: Array<string> = []
      let start = 0
      for (const [index, line] of lines.entries()) {
        const end = start + bytesOf(line).length
        // The turn that is open begins at line 6, and its prompt is line 9.
        if (index >= 6 && index <= 9) {
          for (let at = start; at < end; at++) {
            for (let bit = 0; bit < 8; bit++) {
              const flipped = bytes.slice()
              flipped[at]! ^= 1 << bit
              if (LogScan.scan(flipped).verdict.verdict !== "refuses") wrong.push(`line ${index} byte ${at - start} bit ${bit}: ${word(flipped)}`)
            }
          }
        }
        start = end
      }
      assert.deepStrictEqual(wrong, [])
    }
  })

  it("is refused where the bit is before the end of a turn, with the line", () => {
    const bytes = fileOf(closed)
    let start = 0
    for (const [index, line] of linesOf(closed).entries()) {
      const flipped = bytes.slice()
      flipped[start + 20]! ^= 1
      if (index < closed.length) assert.strictEqual(word(flipped), `refuses ${index + 1} SESSION_DAMAGED`)
      start += bytesOf(line).length
    }
  })
})

describe("damage", () => {
  const size = (count: number, events = open) => bytesOf(linesOf(events).slice(0, count).join("")).length

  it("behind the last end of a turn is cut off, with what follows it", () => {
    for (const garbage of ["\0\0\0\0\n", "\n", "{}\n", "\"turn/end\"\n", "{\"seq\":9,\"ti\n"]) {
      assert.strictEqual(
        word(changed(open, (lines) => lines.splice(10, 1, garbage))),
        `repairs at ${size(10)}: step/end turn/end`
      )
    }
    assert.strictEqual(word(joined(fileOf(closed), new Uint8Array(4096))), `repairs at ${fileOf(closed).length}: `)
  })

  it("before the end of a turn is refused, and nothing is cut", () => {
    for (const garbage of ["\0\0\0\0\n", "\n", "{}\n"]) {
      assert.strictEqual(word(changed(closed, (lines) => lines.splice(3, 1, garbage))), "refuses 4 SESSION_DAMAGED")
    }
    // A line is missing, doubled, or stands elsewhere.
    assert.strictEqual(word(changed(closed, (lines) => lines.splice(3, 1))), "refuses 4 SESSION_DAMAGED")
    assert.strictEqual(word(changed(closed, (lines) => lines.splice(3, 0, lines[3]!))), "refuses 5 SESSION_DAMAGED")
    assert.strictEqual(word(changed(closed, (lines) => lines.splice(3, 2, lines[4]!, lines[3]!))), "refuses 4 SESSION_DAMAGED")
  })

  it("of the line that ends the last turn is refused too: it had been asked to be kept", () => {
    const broken = changed(closed, (lines) => lines.push(lines.pop()!.replace("completed", "compleeed")))
    assert.strictEqual(word(broken), `refuses ${closed.length + 1} SESSION_DAMAGED`)
  })

  it("is not mistaken for the end of a turn where a text speaks of one", () => {
    const spoken = Log.log([...Log.turn(1, "x"), Log.turnStart(2), Log.stepStart(), Log.user("z"), Log.chunk("{\"type\":\"turn/end\",\"verdict\":{}}"), Log.chunk("y")])
    const broken = changed(spoken, (lines) => lines.splice(9, 1, lines[9]!.replace("chunk", "chuck")))
    assert.strictEqual(word(broken), `repairs at ${size(9, spoken)}: step/end turn/end`)
  })

  it("of the header is refused", () => {
    assert.strictEqual(word(new Uint8Array()), "refuses 1 SESSION_DAMAGED")
    assert.strictEqual(word(changed(closed, (lines) => lines.shift())), "refuses 1 SESSION_DAMAGED")
    assert.strictEqual(word(changed(closed, (lines) => lines.unshift("\n"))), "refuses 1 SESSION_DAMAGED")
    assert.strictEqual(word(bytesOf(LogLine.encode(header))), "refuses 1 SESSION_DAMAGED")
  })
})

describe("a later format", () => {
  const later = (more: string) => `{"seq":12,"time":1790000000000,"type":"later/thing",${more}"data":{}}\n`

  it("of the header is refused as such", () => {
    assert.strictEqual(word(bytesOf("{\"type\":\"session\",\"format\":2,\"id\":\"s\"}\n")), "refuses 1 FORMAT_UNSUPPORTED")
  })

  it("of an event is refused, also behind the last end of a turn", () => {
    assert.strictEqual(word(changed(open, (lines) => lines.push(later("")))), "refuses 14 FORMAT_UNSUPPORTED")
  })

  it("of an event that may be passed over is no trouble, and the event is kept", () => {
    const file = changed(open, (lines) => lines.push(later("\"ignorable\":true,")))
    assert.strictEqual(word(file).split(":")[0], `repairs at ${file.length}`)
    assert.strictEqual(LogScan.scan(file).events.at(-1)?.type, "later/thing")
  })
})
