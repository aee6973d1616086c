import { Style } from "@turnpike/channel-terminal"
import { Scalars } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import { Contracts } from "@turnpike/contract"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Column from "../../src/sessions/Column.ts"
import * as Moment from "../../src/sessions/Moment.ts"
import * as SessionList from "../../src/sessions/SessionList.ts"

const now = 1_790_000_000_000

const session = (id: string, facts: Partial<SessionStore.Summary> = {}, header: Partial<SessionStore.Summary["header"]> = {}): SessionStore.Summary => ({
  header: { type: "session", format: 1, id: Scalars.SessionId.make(id), created: 1, harness: "scripted", cwd: "/project", ...header },
  events: 7,
  turns: 2,
  updated: now - 90_000,
  pending: 0,
  holder: undefined,
  ...facts
})

const holder = { name: "turnpike chat (process 1 on anna)", since: 5 }

describe("a list of sessions", () => {
  it("is a table with a heading, told some at a time", () => {
    const table = SessionList.make(Number.POSITIVE_INFINITY, Style.plain)
    assert.strictEqual(
      table.rows([session("one"), session("two-2", { pending: 3, holder }, { title: "A title" })], now) + table.rows([session("three-and-more")], now),
      [
        "ID     CHANGED    TURNS  WAIT  HARNESS     [HELD BY] TITLE · DIRECTORY",
        "one    1 min ago      2        scripted    /project",
        "two-2  1 min ago      2     3  scripted    [turnpike chat (process 1 on anna)] · A title · /project",
        "three-and-more  1 min ago      2        scripted    /project",
        ""
      ].join("\n")
    )
    assert.strictEqual(table.rows([], now), "")
  })

  it.each([40, 60, 80, 100, 200])("is no wider than a terminal of %d columns, whatever stands in it", (columns) => {
    const wide = "漢字 and 🚂 e\u0301\u0301 \u001b[31mred\u0007\n\u202e".repeat(20)
    const sessions = [
      session("x".repeat(128), { turns: 12345, pending: 99999, holder: { name: wide, since: 0 } }, { title: wide, cwd: `/${wide}`, harness: wide }),
      session("a", { updated: 0 }),
      session("b", { updated: Number.MAX_SAFE_INTEGER })
    ]
    const told = SessionList.make(columns, Style.plain).rows(sessions, now)
    for (const line of told.split("\n")) {
      assert.isAtMost(Column.width(line), columns)
      assert.notMatch(line, /[\u0000-\u001f\u202e]/)
    }
    assert.strictEqual(told.split("\n").length, 5)
  })

  it("cuts no id where nothing is cut", () => {
    const id = "x".repeat(128)
    assert.include(SessionList.make(Number.POSITIVE_INFINITY, Style.plain).rows([session(id)], now), id)
  })

  it("is objects for programs, in the words of the wire", () => {
    assert.deepStrictEqual(SessionList.toJson(session("a", { holder, pending: 1 }, { title: "t", parent: { id: Scalars.SessionId.make("p"), events: 3 } })), {
      id: Scalars.SessionId.make("a"),
      title: "t",
      harness: "scripted",
      cwd: "/project",
      created: 1,
      updated: now - 90_000,
      events: 7,
      turns: 2,
      pending: 1,
      holder,
      parent: { id: Scalars.SessionId.make("p"), events: 3 }
    })
    assert.deepStrictEqual(SessionList.toJson(session("b")).holder, null)
    assert.isTrue(Result.isSuccess(Contracts.decode("session-header")(session("a").header)))
  })
})

describe("a column", () => {
  it("counts what a terminal shows", () => {
    assert.deepStrictEqual(["", "abc", "漢字", "🚂", "e\u0301", "é·"].map(Column.width), [0, 3, 4, 2, 1, 2])
  })

  it("cuts between characters and says so", () => {
    assert.deepStrictEqual([Column.fit("abcdef", 4), Column.fit("漢字漢字", 4), Column.fit("🚂🚂🚂", 3), Column.fit("abc", 3), Column.fit("abc", 0)], ["abc…", "漢…", "🚂…", "abc", "…"])
    assert.deepStrictEqual([Column.left("ab", 4), Column.left("漢字漢", 5), Column.left("a  b\n", 5)], ["ab  ", "漢字…", "a b  "])
  })
})

describe("a moment", () => {
  it("is told as how long ago it was, in ten characters", () => {
    const second = 1000
    const ages = [0, 59, 60, 3599, 3600, 86_399, 86_400, 7 * 86_400 - 1].map((age) => Moment.ago(now - age * second, now))
    assert.deepStrictEqual(ages, ["just now", "just now", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "1 d ago", "6 d ago"])
    assert.match(Moment.ago(now - 8 * 86_400 * second, now), /^\d{4}-\d\d-\d\d$/)
    assert.strictEqual(Moment.ago(now + 120 * second, now), "later")
  })

  it("that no calendar has is a number", () => {
    assert.match(Moment.format(now), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
    assert.strictEqual(Moment.format(Number.MAX_SAFE_INTEGER), "9007199254740991 ms after 1970")
  })
})
