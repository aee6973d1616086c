/**
 * What toy-agent says, as of version 1.0.0, in its own words. All but `hello` belongs to a turn and
 * carries its number. Fields that are not listed here are ignored: a newer toy may have more.
 */
import { Scalars } from "@turnpike/contract"
import * as Schema from "effect/Schema"

const frame = <const Op extends string, F extends Schema.Struct.Fields>(op: Op, fields: F) => Schema.Struct({ op: Schema.Literal(op), ...fields })
const turn = Scalars.Count
const Tokens = Schema.Struct({ in: Scalars.Count, out: Scalars.Count, cached: Scalars.Count })
export type Tokens = typeof Tokens.Type

/** The greeting; `free` has the tools that run unasked. */
const Hello = frame("hello", { v: Schema.Literal(1), toy: Schema.String, chat: Scalars.NonEmptyString, free: Schema.Array(Schema.String) })
export type Hello = typeof Hello.Type

export const decode = Schema.decodeUnknownResult(Schema.Union([
  Hello,
  frame("text", { turn, add: Schema.String }),
  frame("tool", { turn, id: Scalars.CallId, name: Scalars.NonEmptyString, line: Schema.String, ask: Schema.Boolean }),
  frame("ran", { turn, id: Scalars.CallId, how: Schema.Literals(["ok", "failed", "denied"]), out: Schema.String }),
  // `why` is open: a reason that nobody knows has to end the turn all the same.
  frame("done", { turn, why: Schema.String, tokens: Schema.optionalKey(Tokens) })
]))
