import { assert, describe, it } from "@effect/vitest"
import { Redaction } from "../src/index.ts"
import * as Random from "./support/Random.ts"

const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
const pem = (kind: string) => `-----BEGIN ${kind}-----\n${body}\n${body}\n-----END ${kind}-----`

/** What is written, and what is left of it. */
const cases: ReadonlyArray<readonly [string, string]> = [
  [`a ${pem("PRIVATE KEY")} b`, "a [REDACTED] b"],
  [`a ${pem("RSA PRIVATE KEY")} b`, "a [REDACTED] b"],
  [`a ${pem("PGP PRIVATE KEY BLOCK")} b`, "a [REDACTED] b"],
  [`a -----BEGIN OPENSSH PRIVATE KEY-----\n${body}`, "a [REDACTED]"],
  ["scan sgnl://linkdevice?uuid=abc&pub_key=def now", "scan [REDACTED] now"],
  ["api_key=abc123", "api_key=[REDACTED]"],
  ["API-KEY: abc123 rest", "API-KEY: [REDACTED] rest"],
  ["apikey = abc123", "apikey = [REDACTED]"],
  ["access_key=abc", "access_key=[REDACTED]"],
  ["aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [REDACTED]"],
  ["client_secret: abc", "client_secret: [REDACTED]"],
  ["token=abc", "token=[REDACTED]"],
  ["password=hunter2", "password=[REDACTED]"],
  ["passwd: hunter2, user: x", "passwd: [REDACTED], user: x"],
  ["PWD=hunter2", "PWD=[REDACTED]"],
  ["credential=abc", "credential=[REDACTED]"],
  ["credentials: abc", "credentials: [REDACTED]"],
  ["Authorization: Bearer abcdef", "Authorization: Bearer [REDACTED]"],
  ["authorization=Basic dXNlcjpwYXNz", "authorization=Basic [REDACTED]"],
  ["Authorization: token abcdef", "Authorization: token [REDACTED]"],
  ["x-api-key: abcdef", "x-api-key: [REDACTED]"],
  ["{\"password\":\"a b, c; d\",\"user\":\"u\"}", "{\"password\":\"[REDACTED]\",\"user\":\"u\"}"],
  ["{\"password\":\"a\\\"b\",\"user\":\"u\"}", "{\"password\":\"[REDACTED]\",\"user\":\"u\"}"],
  ["{\\\"accessToken\\\":\\\"abc def\\\",\\\"n\\\":1}", "{\\\"accessToken\\\":\\\"[REDACTED]\\\",\\\"n\\\":1}"],
  ["password='it hurts' x", "password='[REDACTED]' x"],
  ["Cookie: a=b; c=d\nHost: x", "Cookie: [REDACTED]\nHost: x"],
  ["run --token abc --verbose", "run --token [REDACTED] --verbose"],
  ["run --api-key=abc --verbose", "run --api-key=[REDACTED] --verbose"],
  ["ghp_abcdefghij0123456789", "[REDACTED]"],
  ["x_gho_abcdefghij0123456789", "x_[REDACTED]"],
  ["github_pat_11ABCDEFG0123456789_abc", "[REDACTED]"],
  ["sk-ant-oat01-abcdefghijkl", "[REDACTED]"],
  ["(sk-proj-abcdefghijkl)", "([REDACTED])"],
  ["sk_live_abcdefghijkl", "[REDACTED]"],
  ["glpat-abcdefghij0123456789", "[REDACTED]"],
  ["AKIAIOSFODNN7EXAMPLE", "[REDACTED]"],
  ["AIzaSyA1234567890abcdefghijklmnopqrstuv", "[REDACTED]"],
  ["xoxb-1234567890-abcdef", "[REDACTED]"],
  ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_d", "[REDACTED]"],
  ["https://user:pass@host/path", "https://user:[REDACTED]@host/path"],
  ["redis://:pass@host", "redis://:[REDACTED]@host"],
  ["git+https://u:p@h", "git+https://u:[REDACTED]@h"],
  ["Bearer abcdefghijkl", "Bearer [REDACTED]"],
  // What is no credential stays.
  ["the token is gone", "the token is gone"],
  ["tokens: many", "tokens: many"],
  ["Bearer short", "Bearer short"],
  ["https://host:8080/path@x", "https://host:8080/path@x"],
  ["task-management-system", "task-management-system"],
  ["sk_buff_head", "sk_buff_head"],
  ["-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----"],
  ["", ""]
]

describe("shapes", () => {
  it.each(cases)("makes of %j the text %j", (text, expected) => {
    assert.strictEqual(Redaction.shapes(text), expected)
  })

  it("changes nothing the second time, whatever the text", () => {
    const random = Random.make(1)
    const pieces = [
      ...cases.flat(), "token", "password", "authorization", "bearer ", "Basic ", ":", "=", " ", "\n", "\"", "'", "\\", "\\\"", ",", ";", "}",
      "[REDACTED]", "[", "REDACTED", "]", "--", "://", "@", "a", "xyz12345678901234", "eyJ", ".", "-----BEGIN PRIVATE KEY-----", "-----END "
    ] as const
    for (let round = 0; round < 20_000; round++) {
      let text = ""
      for (let length = random.below(8); length >= 0; length--) text += pieces[random.below(pieces.length)] ?? ""
      const once = Redaction.shapes(text)
      assert.strictEqual(Redaction.shapes(once), once, JSON.stringify(text))
    }
  })

  it("comes to an end on a megabyte of hostile text", () => {
    const megabyte = 1024 * 1024
    const fill = (unit: string) => unit.repeat(Math.ceil(megabyte / unit.length)).slice(0, megabyte)
    const units = [
      "a", "a.", "a-", "eyJ-", "eyJaaaaaaaa.", "a://", "a://b:", "a+a", "token ", "token=", "token:\"", "password\\", "\\", "\\\"", "\"", " ",
      "\n", "-----BEGIN ", "-----BEGIN A PRIVATE KEY-----", "-----END ", "bearer ", "sk-", "--token ", "cookie:", "@", "[REDACTED]", "A ", "secret_"
    ]
    for (const unit of units) {
      const text = fill(unit)
      assert.isAtMost(Redaction.shapes(text).length, text.length * 3, JSON.stringify(unit))
    }
    for (const [start, unit] of [["token", " "], ["token=", " "], ["token=\"", "\\"], ["token\\", "\\"], ["a://", "b"], ["a://b:", "c"], ["eyJ", "a"], ["password=bearer", " "]] as const) {
      assert.isAtMost(Redaction.shapes(`${start}${fill(unit)}`).length, megabyte * 3, JSON.stringify([start, unit]))
    }
  }, 120_000)
})

describe("withSecrets", () => {
  it("removes the given values wherever they stand, longer ones first", () => {
    const redact = Redaction.withSecrets(["abcdef", "abcdefgh"])
    assert.strictEqual(redact("xabcdefghx abcdef"), "x[REDACTED]x [REDACTED]")
  })

  it("removes a value that holds characters of patterns and replacements", () => {
    assert.strictEqual(Redaction.withSecrets(["$&$1.*+?("])("a $&$1.*+?( b"), "a [REDACTED] b")
  })

  it("removes a value as JSON writes it", () => {
    const secret = "line one\n\"two\""
    assert.strictEqual(Redaction.values([secret])(JSON.stringify({ a: secret })), "{\"a\":\"[REDACTED]\"}")
  })

  it("removes the long texts of a value that is a JSON document", () => {
    const file = JSON.stringify({ tokens: { id: "id-token-0123456789" }, list: ["refresh-0123456789"], kind: "login" })
    const redact = Redaction.values([file, "{not JSON, but secret"])
    assert.strictEqual(
      redact(`id-token-0123456789 refresh-0123456789 login ${file} {not JSON, but secret`),
      "[REDACTED] [REDACTED] login [REDACTED] [REDACTED]"
    )
  })

  it("leaves values under 6 characters, and parts of the mark, alone", () => {
    assert.strictEqual(Redaction.withSecrets(["a", "12345", "REDACTED", ""])("a 12345 [REDACTED]"), "a 12345 [REDACTED]")
  })

  it("also removes the shapes, with what is left of a value that holds a secret", () => {
    assert.strictEqual(Redaction.withSecrets(["abcdef"])("password=abcdefXYZ sk-zyxwvutsr"), "password=[REDACTED] [REDACTED]")
  })

  it("changes nothing the second time", () => {
    const random = Random.make(7)
    const alphabet = ["a", "b", "[", "]", "R", "E", "D", "=", "\"", " ", "token", "key"] as const
    const word = (length: number) => Array.from({ length }, () => random.pick(alphabet)).join("")
    for (let round = 0; round < 3000; round++) {
      const redact = Redaction.withSecrets([word(6), word(8)])
      const text = word(40)
      const once = redact(text)
      assert.strictEqual(redact(once), once, JSON.stringify(text))
    }
  })
})

describe("secretsOf", () => {
  it("takes the values of variables that are named like secrets", () => {
    assert.deepStrictEqual(
      Redaction.secretsOf({
        ANTHROPIC_API_KEY: "k1", GITHUB_TOKEN: "t1", DB_PASSWORD: "p1", my_secret: "s1", NPM_CONFIG__AUTH: "a1", SECRET_KEY_BASE: "b1", EMPTY_TOKEN: "",
        DB_PASS: "p2", GITHUB_PAT: "t2", MYSQL_PWD: "p3", AUTHORIZATION: "a2", DATABASE_URL: "postgres://me:hunter22@db/x", REDIS: "redis://:hunter22@db"
      }),
      ["k1", "t1", "p1", "s1", "a1", "b1", "p2", "t2", "p3", "a2", "postgres://me:hunter22@db/x", "redis://:hunter22@db"]
    )
  })

  it("leaves places, amounts and other variables alone", () => {
    assert.deepStrictEqual(
      Redaction.secretsOf({
        PATH: "/bin", PWD: "/home/me", SSH_AUTH_SOCK: "/tmp/agent", MAX_OUTPUT_TOKENS: "32000", XAUTHORITY: "/x", KEY_FILE: "/k", TOKEN_PATH: "/t",
        OLDPWD: "/home", GIT_AUTHOR_NAME: "Jane Doe", GIT_AUTHOR_EMAIL: "jane@example.org", XKB_KEYMAP: "de", KEYBOARD: "de", COMPASS_HOME: "/c", PATTERN: "p",
        HOMEPAGE: "https://example.org/a:b@c", PROXY: "http://proxy:3128"
      }),
      []
    )
  })
})

describe("json", () => {
  it("redacts every text of a document and leaves the rest", () => {
    assert.deepStrictEqual(
      Redaction.json({ a: ["secret1", 1, null, { b: "x secret1" }], secret1: true }, Redaction.values(["secret1"])),
      { a: ["[REDACTED]", 1, null, { b: "x [REDACTED]" }], secret1: true }
    )
  })
})

describe("byteLength", () => {
  it("counts as UTF-8 does, a lone surrogate as the character that replaces it", () => {
    for (const text of ["", "abc", "é", "€", "😀", "\ud800", "\udc00a", "a\ud83d", "aé€😀"]) {
      assert.strictEqual(Redaction.byteLength(text), new TextEncoder().encode(text).length, JSON.stringify(text))
    }
  })
})

describe("tail and head", () => {
  const random = Random.make(3)
  const alphabet = ["a", "é", "€", "😀", "\ud800", "\udc00", "\n"] as const
  const texts = Array.from({ length: 500 }, () => Array.from({ length: random.below(20) }, () => random.pick(alphabet)).join(""))
  const splits = (text: string, at: number) =>
    at > 0 && at < text.length && /[\ud800-\udbff]/.test(text[at - 1] ?? "") && /[\udc00-\udfff]/.test(text[at] ?? "")

  it("tail is a suffix within the bound that splits no code point and could not be longer", () => {
    for (const text of texts) {
      for (const bound of [0, 1, 2, 3, 4, 7, 12, 1000]) {
        const tail = Redaction.tail(text, bound)
        assert.isTrue(text.endsWith(tail))
        assert.isAtMost(Redaction.byteLength(tail), bound)
        const start = text.length - tail.length
        assert.isFalse(splits(text, start), JSON.stringify([text, bound]))
        if (start > 0) {
          const longer = text.slice(splits(text, start - 1) ? start - 2 : start - 1)
          assert.isAbove(Redaction.byteLength(longer), bound, JSON.stringify([text, bound]))
        }
      }
    }
  })

  it("head is a prefix within the bound that splits no code point", () => {
    for (const text of texts) {
      for (const bound of [0, 1, 2, 3, 5, 1000]) {
        const head = Redaction.head(text, bound)
        assert.isTrue(text.startsWith(head))
        assert.isAtMost(head.length, bound)
        assert.isFalse(splits(text, head.length))
      }
    }
  })

  it("a bound that is no bound gives nothing", () => {
    assert.strictEqual(Redaction.tail("abc", Number.NaN), "")
    assert.strictEqual(Redaction.tail("abc", -1), "")
    assert.strictEqual(Redaction.tail("abc", 0), "")
  })
})

describe("failureTail", () => {
  const tailOf = (output: string, maxBytes?: number) =>
    Redaction.failureTail({
      what: "the agent",
      exit: "exited with code 1",
      output,
      redact: Redaction.shapes,
      ...(maxBytes === undefined ? {} : { maxBytes })
    })

  it("says what ended, how, how many bytes there were, and their end", () => {
    assert.strictEqual(tailOf("boom\n"), "the agent exited with code 1 (5 bytes of output): boom")
  })

  it("counts all bytes, not those that are shown", () => {
    assert.strictEqual(tailOf("é".repeat(5000), 4), "the agent exited with code 1 (10000 bytes of output): éé")
  })

  it("shows 2048 bytes unless told otherwise, and none where the bound is 0", () => {
    const shown = tailOf("x".repeat(5000)).split(": ")[1] ?? ""
    assert.strictEqual(shown.length, 2048)
    assert.strictEqual(tailOf("boom", 0), "the agent exited with code 1 (4 bytes of output)")
    assert.strictEqual(tailOf(" \n "), "the agent exited with code 1 (3 bytes of output)")
  })

  it("redacts before it cuts: of a secret across the cut nothing is left", () => {
    const secret = `sk-ant-${"s".repeat(60)}`
    for (let bound = 1; bound < 120; bound++) {
      const shown = tailOf(`log ${secret} and then it died`, bound)
      assert.notInclude(shown, "sss", `bound ${bound}`)
    }
    const key = pem("PRIVATE KEY")
    for (let bound = 1; bound < 200; bound += 3) assert.notInclude(tailOf(`${key} end`, bound), body.slice(0, 8))
  })
})
