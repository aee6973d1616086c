import { assert, describe, it } from "@effect/vitest"
import type { SessionEvent } from "@turnpike/contract"
import { Contracts } from "@turnpike/contract"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as zlib from "node:zlib"
import { LogLine } from "../src/index.ts"
import * as Log from "./support/LogEvents.ts"
import * as Random from "./support/Random.ts"
import { crc32 } from "../src/internal/crc32.ts"

const bytesOf = (text: string) => new TextEncoder().encode(text)
const decode = LogLine.decoder("session-event")
const fault = (line: string) => {
  const result = decode(bytesOf(line))
  return Result.isSuccess(result) ? "none" : `${result.failure.kind}: ${result.failure.message}`
}
/** The line with a checksum that is right, whatever stands in it. */
const summed = (object: string) => {
  const body = object.slice(0, -1)
  return `${body},"sum":"${crc32(bytesOf(body))}"}`
}

const chunk: SessionEvent.SessionEvent = { seq: 3, time: 1790000000000, ...Log.chunk("é\ud83d\u2028🚂") }

describe("the checksum", () => {
  it("is the one that zlib has", () => {
    assert.strictEqual(crc32(bytesOf("123456789")), "cbf43926")
    assert.strictEqual(crc32(bytesOf("")), "00000000")
    const random = Random.make(1)
    for (let length = 0; length < 300; length++) {
      const bytes = Uint8Array.from({ length }, () => random.below(256))
      assert.strictEqual(crc32(bytes), zlib.crc32(bytes).toString(16).padStart(8, "0"))
    }
  })

  it("is the last field of a line, over what stands before it", () => {
    const line = LogLine.encode(chunk)
    const [, body = "", sum = ""] = /^(.*),"sum":"([0-9a-f]{8})"\}$/su.exec(line) ?? []
    assert.strictEqual(`${body}}`, JSON.stringify(chunk))
    assert.strictEqual(sum, zlib.crc32(Buffer.from(body)).toString(16).padStart(8, "0"))
  })
})

describe("a line", () => {
  it("gives back the record that it is of, without its checksum", () =>
    Effect.gen(function*() {
      for (const contract of ["session-header", "session-event", "inbox-entry"] as const) {
        // A union of schemas has no single type of value; the generator only needs one schema.
        const schema = Contracts.schema(contract) as Schema.Codec<unknown, unknown>
        const values = yield* Arbitrary.sampleEffect(Arbitrary.schema(schema), { count: 300, seed: contract, maxDiscards: 100_000 })
        const decode = LogLine.decoder(contract)
        for (const value of values) {
          const { sum: _, ...record } = value as LogLine.Record<typeof contract> & { readonly sum?: string }
          const line = LogLine.encode(value as LogLine.Record<typeof contract>)
          assert.deepStrictEqual(decode(bytesOf(line)), Result.succeed(JSON.parse(JSON.stringify(record))))
        }
      }
    }).pipe(Effect.runPromise))

  it("may lack its checksum", () => {
    assert.deepStrictEqual(decode(bytesOf(JSON.stringify(chunk))), Result.succeed(chunk))
  })

  it("keeps a field that is named __proto__", () => {
    const line = "{\"seq\":3,\"time\":0,\"type\":\"x/a/b\",\"data\":{\"__proto__\":{\"a\":1}}}"
    assert.strictEqual(Result.match(decode(bytesOf(line)), { onFailure: () => "", onSuccess: (event) => JSON.stringify(event) }), line)
    assert.strictEqual(fault(summed(line)), "none")
  })
})

describe("a line that is damaged", () => {
  it("is told by what is wrong with it", () => {
    const line = LogLine.encode(chunk)
    const good = JSON.stringify(chunk)
    assert.strictEqual(fault(""), "damaged: it is not JSON")
    assert.strictEqual(fault("\0\0\0\0"), "damaged: it is not JSON")
    assert.strictEqual(fault(line.slice(0, -1)), "damaged: it is not JSON")
    assert.strictEqual(fault("[1]"), "damaged: it is not a JSON object")
    assert.strictEqual(fault("null"), "damaged: it is not a JSON object")
    assert.strictEqual(fault(line.replace("kind", "kine")), "damaged: its checksum is not that of its bytes")
    assert.strictEqual(fault(line.replace(/"sum":"./u, "\"sum\":\"g")), "damaged: its checksum is not that of its bytes")
    assert.strictEqual(fault(`${line} `), "damaged: its checksum is not its last field")
    assert.strictEqual(fault(`{"sum":"00000000",${good.slice(1)}`), "damaged: its checksum is not its last field")
    assert.strictEqual(fault(good.slice(0, -1) + ",\"sum\": \"00000000\"}"), "damaged: its checksum is not its last field")
    assert.deepStrictEqual(decode(Uint8Array.of(0x22, 0xff, 0x22)), Result.fail({ kind: "damaged", message: "its bytes are not UTF-8" }))
    assert.match(fault("\ufeff" + good), /^damaged: it is not JSON/u)
  })

  it("repeats nothing that stands in it", () => {
    const secret = "sk-ant-not-to-be-told"
    for (const line of [secret, `{"data":"${secret}"}`, `{"seq":"${secret}"}`, summed(`{"seq":"${secret}"}`)]) {
      assert.notInclude(fault(line), secret)
    }
  })

  it("is no event where it is whole and without a checksum, and known to this format", () => {
    assert.match(fault("{\"seq\":0}"), /^damaged: /u)
    assert.match(fault("{\"seq\":0,\"time\":0,\"type\":\"turn/end\",\"data\":{}}"), /^damaged: /u)
    assert.match(fault("{\"seq\":0,\"time\":0,\"type\":\"x/nameless\",\"data\":{}}"), /^damaged: /u)
  })
})

describe("a line that a later version wrote", () => {
  it("has an event that this one does not know and may not pass over", () => {
    const later = "{\"seq\":0,\"time\":0,\"type\":\"later/thing\",\"data\":{}}"
    assert.match(fault(later), /^newer: /u)
    assert.match(fault(summed(later)), /^newer: /u)
    assert.strictEqual(fault(later.replace("\"data\"", "\"ignorable\":true,\"data\"")), "none")
  })

  it("has a field that this one does not know, and is as it was written", () => {
    const grown = `${JSON.stringify(chunk).slice(0, -1)},"later":1}`
    assert.match(fault(summed(grown)), /^newer: /u)
    assert.match(fault(grown), /^damaged: /u)
  })

  it("is a header of a format to come, and not what is no header", () => {
    const decode = LogLine.decoder("session-header")
    const kind = (line: string) => Result.match(decode(bytesOf(line)), { onFailure: ({ kind }) => kind, onSuccess: () => "none" })
    assert.strictEqual(kind("{\"type\":\"session\",\"format\":2}"), "newer")
    assert.strictEqual(kind(summed("{\"type\":\"session\",\"format\":2,\"id\":7}")), "newer")
    assert.strictEqual(kind("{\"type\":\"session\",\"format\":1}"), "damaged")
    assert.strictEqual(kind("{\"type\":\"session\",\"format\":0}"), "damaged")
    assert.strictEqual(kind("{\"type\":\"session\",\"format\":1.5}"), "damaged")
    assert.strictEqual(kind("{\"type\":\"session\",\"format\":\"2\"}"), "damaged")
    assert.strictEqual(kind(summed("{\"type\":\"received\",\"format\":2}")), "damaged")
  })
})
