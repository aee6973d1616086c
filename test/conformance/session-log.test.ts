import { SessionEvent, Verdict } from "@turnpike/contract"
import { LogLine, LogScan, LogState, Surface } from "@turnpike/kernel"
import { assert, describe, it } from "@effect/vitest"
import * as crypto from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { directory, fileNameOf, type LogFile, logs, root, vectors } from "./support/Vectors.ts"

const own = logs(".")
const golden = logs("golden")

/** What the scanner says, in the words of the vectors. */
const found = (bytes: Uint8Array) => {
  const { events, verdict } = LogScan.scan(bytes)
  switch (verdict.verdict) {
    case "loads":
      return { verdict: verdict.verdict, events: events.length }
    case "repairs":
      return { verdict: verdict.verdict, cut_at: verdict.cutAt, append: verdict.closers, requeue: verdict.unspent }
    case "refuses":
      return {
        verdict: verdict.verdict,
        line: verdict.line,
        code: verdict.code,
        ...(verdict.rule === undefined ? {} : { rule: verdict.rule })
      }
  }
}

const repaired = (bytes: Uint8Array): Uint8Array => {
  const { verdict } = LogScan.scan(bytes)
  return verdict.verdict === "repairs"
    ? Buffer.concat([bytes.subarray(0, verdict.cutAt), Buffer.from(verdict.closers.map((event) => `${LogLine.encode(event)}\n`).join(""))])
    : bytes
}

/** What a vector says of every log, whether golden or not. */
const expected = ({ vector: { then } }: LogFile) => {
  if (then.verdict !== "loads") return then
  const { events, verdict } = then
  return { verdict, events }
}

describe("the logs", () => {
  it("are named after their titles, each with its expectation", () => {
    for (const folder of [".", "golden"] as const) {
      const stems = fs.readdirSync(path.join(directory, "session-log", folder))
        .filter((name) => name !== "golden")
        .map((name) => name.replace(/(\.expected\.json|\.repaired\.jsonl|\.jsonl)$/u, ""))
      const titles = logs(folder).map(({ vector }) => fileNameOf(vector.title))
      assert.deepStrictEqual([...new Set(stems)].sort(), titles.sort())
    }
    assert.isAtLeast(own.length, 100)
  })

  it("have each verdict, each code, and each rule of a log", () => {
    const refusals = own.flatMap(({ vector: { then } }) => then.verdict === "refuses" ? [then] : [])
    assert.deepStrictEqual([...new Set(own.map(({ vector }) => vector.then.verdict))].sort(), ["loads", "refuses", "repairs"])
    assert.deepStrictEqual([...new Set(refusals.map(({ code }) => code))].sort(), ["FORMAT_UNSUPPORTED", "SESSION_DAMAGED"])
    assert.deepStrictEqual([...new Set(refusals.flatMap(({ rule }) => rule ?? []))].sort(), Object.keys(LogState.rules).sort())
  })
})

describe("the scanner", () => {
  for (const log of [...own, ...golden]) {
    it(log.name, () => assert.deepStrictEqual(found(log.bytes), expected(log)))
  }

  it("has nothing to repair after a repair, and writes the same each time", () => {
    for (const { bytes, name, vector } of [...own, ...golden]) {
      if (vector.then.verdict !== "repairs") continue
      const after = repaired(bytes)
      assert.strictEqual(LogScan.scan(after).verdict.verdict, "loads", name)
      assert.isTrue(Buffer.from(repaired(bytes)).equals(after), name)
      assert.strictEqual(Buffer.from(after.subarray(0, vector.then.cut_at)).compare(bytes.subarray(0, vector.then.cut_at)), 0, name)
    }
  })
})

describe("the vectors of events", () => {
  it("have each type of event in a valid one", () => {
    const types = vectors(["session-event"]).flatMap(({ vector }) =>
      vector.then.verdict === "valid" ? [(vector.given.input as { readonly type: string }).type] : [])
    const known = SessionEvent.bodies.map((body) => body.fields.type.literal)
    assert.deepStrictEqual(known.filter((type) => !types.includes(type)), [])
  })
})

describe("schemas/README.md", () => {
  it("lists exactly the rules of a log", () => {
    const text = fs.readFileSync(path.join(root, "schemas/README.md"), "utf8")
    const table = /<!-- log-rules -->\n([\s\S]*?)<!-- \/log-rules -->/u.exec(text)?.[1] ?? ""
    const rows = [...table.matchAll(/^\| `([a-z-]+)` \| (.*) \|$/gmu)].map(([, rule, sentence]) => [rule, sentence])
    assert.deepStrictEqual(rows, Object.entries(LogState.rules).map(([rule, sentence]) => [rule, sentence]))
  })
})

/** `docs/decisions/0007-the-log-is-frozen.md` says what is held here. */
describe("the golden logs", () => {
  const decision = fs.readFileSync(path.join(root, "docs/decisions/0007-the-log-is-frozen.md"), "utf8")
  const file = (name: string) => fs.readFileSync(path.join(directory, "session-log/golden", name))

  it("are the bytes that the decision names", () => {
    const named = [...decision.matchAll(/^\| `([^`]+)` \| `([0-9a-f]{64})` \|$/gmu)].map(([, name = "", digest = ""]) => [name, digest])
    const actual = fs.readdirSync(path.join(directory, "session-log/golden")).sort()
      .map((name) => [name, crypto.createHash("sha256").update(file(name)).digest("hex")])
    assert.deepStrictEqual(named.sort(), actual)
  })

  it("have each type of event, each trigger, each verdict and each mark of the surface that was released", () => {
    const events = golden.flatMap(({ bytes }) => LogScan.scan(bytes).events)
    const types = new Set<string>(events.map(({ type }) => type))
    assert.deepStrictEqual(SessionEvent.bodies.map((body) => body.fields.type.literal).filter((type) => !types.has(type)), [])
    assert.isTrue(events.some(SessionEvent.isForeign))
    const triggers = new Set(events.flatMap((event) => event.type === "turn/start" ? [event.data.trigger.kind] : []))
    assert.deepStrictEqual([...triggers].sort(), ["background", "continuation", "injection", "message"])
    const verdicts = new Set(events.flatMap((event) => event.type === "turn/end" ? [event.data.verdict.type] : []))
    assert.deepStrictEqual([...verdicts].sort(), Verdict.Verdict.members.map((member) => member.fields.type.literal).sort())
    const marks = new Set(events.flatMap((event) => "surface_op" in event ? [typeof event.surface_op] : []))
    assert.deepStrictEqual([...marks].sort(), ["object", "string"])
  })

  it("mean what they meant", () => {
    const [log] = golden.filter(({ vector }) => vector.then.verdict === "loads")
    if (log === undefined || log.vector.then.verdict !== "loads") return assert.fail("there is no golden log that loads")
    const { events } = LogScan.scan(log.bytes)
    const turns = events.flatMap((event, index): ReadonlyArray<ReadonlyArray<unknown>> => {
      if (event.type !== "turn/start") return []
      const end = events.slice(index).find(({ type }) => type === "turn/end")
      return [[event.data.turn, event.data.trigger.kind, end?.type === "turn/end" ? end.data.verdict.type : undefined]]
    })
    const messages = Surface.deriveMessages(events).map((message): ReadonlyArray<unknown> =>
      [message.seq, message.role, message.role === "tool" ? message.output : message.text])
    assert.deepStrictEqual({ turns, messages }, { turns: log.vector.then.turns ?? [], messages: log.vector.then.messages ?? [] })
  })

  it("are written again byte for byte", () => {
    for (const { bytes, name } of golden) {
      const { events, header } = LogScan.scan(bytes)
      assert.isDefined(header, name)
      if (header === undefined) continue
      const again = [header, ...events].map((record) => `${LogLine.encode(record)}\n`).join("")
      assert.strictEqual(again, Buffer.from(bytes).toString().slice(0, again.length), name)
    }
  })

  it("are repaired byte for byte", () => {
    const cut = golden.filter(({ vector }) => vector.then.verdict === "repairs")
    assert.isAtLeast(cut.length, 1)
    for (const { bytes, name } of cut) {
      assert.strictEqual(Buffer.from(repaired(bytes)).toString(), file(`${path.basename(name, ".jsonl")}.repaired.jsonl`).toString(), name)
    }
  })
})
