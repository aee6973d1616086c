/**
 * What a scripted model does when a client asks it something.
 *
 * A scenario travels in the base URL that a client is given, as one path
 * segment in the form of RFC 3986 section 3.3: its type, then its parameters,
 * `slow,words=20,interval_ms=100`. Values are percent-encoded (a comma is
 * `%2C`), a parameter that is left out has the default that its description
 * names, and `command` of `tools` may be repeated. So two clients of one server
 * can live through different scenarios, and a shell can spell all of them.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"

const count = (minimum: number, maximum: number) =>
  Schema.String.check(Schema.isPattern(/^[0-9]{1,9}$/, { expected: "a whole number" })).pipe(
    Schema.decodeTo(Schema.FiniteFromString),
    Schema.check(Schema.isBetween({ minimum, maximum }))
  )

const Words = count(1, 1_000_000)
const Milliseconds = count(0, 3_600_000)
const Times = count(1, 1_000)
const ErrorStatus = count(400, 599)
const RetryAfter = count(0, 3_600)
const Flag = Schema.Literals(["true", "false"]).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((text) => text === "true"),
    encode: SchemaGetter.transform((flag): "true" | "false" => (flag ? "true" : "false"))
  })
)
/** `stream`: only streamed answers misbehave, as when a proxy breaks streams; `any`: whole JSON answers too. */
const Where = Schema.Literals(["stream", "any"])

const scenario = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  description: string,
  fields: Fields
) => Schema.Struct({ type: Schema.Literal(type), ...fields }).annotate({ identifier: `ModelScenario.${type}`, description })

const members = [
  scenario("text", "Answers with a list of the user's prompts it was sent: proof of the context it has.", {}),
  scenario("fixed", "Answers with `text`.", { text: Schema.NonEmptyString }),
  scenario("slow", "Answers with `words` numbered words (default 50), one every `interval_ms` (default 200).", {
    words: Schema.optionalKey(Words),
    interval_ms: Schema.optionalKey(Milliseconds)
  }),
  scenario("big", "Answers with `words` numbered words (default 2000) as fast as the client reads.", {
    words: Schema.optionalKey(Words)
  }),
  scenario("think", "Thinks aloud, then answers as `text` does.", {}),
  scenario("tool", "Asks for the shell `command`; once it has the result, answers with what it saw.", {
    command: Schema.NonEmptyString
  }),
  scenario(
    "tools",
    "Asks for each `command` (repeatable) in turn, one a request, or all at once with `together=true`; then answers with what it saw.",
    {
      command: Schema.ArrayEnsure(Schema.NonEmptyString).check(Schema.isMinLength(1)),
      together: Schema.optionalKey(Flag)
    }
  ),
  scenario("read", "Asks to read the file `path`; then answers with what it saw.", { path: Schema.NonEmptyString }),
  scenario("write", "Asks to write `content` (default one line) to the file `path`; then answers with what it saw.", {
    path: Schema.NonEmptyString,
    content: Schema.optionalKey(Schema.String)
  }),
  scenario("max_tokens", "Says a few words and stops at its output limit.", {}),
  scenario("refusal", "Says a few words and stops because it refuses.", {}),
  scenario("empty", "Ends its answer without any content.", {}),
  scenario("hang", "Says `words` words (default 2) and then nothing: the stream stays open.", {
    words: Schema.optionalKey(Words)
  }),
  scenario("silent", "Opens its answer and never says a word.", {}),
  scenario(
    "wait",
    "Stops until it is released, then answers as `text` does; `at` is where: `headers` (before the status line), `start` (before the first word) or `middle` (after the first word, the default).",
    { at: Schema.optionalKey(Schema.Literals(["headers", "start", "middle"])) }
  ),
  scenario(
    "cut",
    "Says `words` words (default 3), then the connection ends; the first `times` requests (default all), `in=stream` (default) or `in=any`.",
    { words: Schema.optionalKey(Words), times: Schema.optionalKey(Times), in: Schema.optionalKey(Where) }
  ),
  scenario("reset", "Resets the connection instead of answering; the first `times` requests (default all).", {
    times: Schema.optionalKey(Times)
  }),
  scenario("bad_json", "Sends an event that is torn JSON and ends; `in=stream` (default) or `in=any`.", {
    in: Schema.optionalKey(Where)
  }),
  scenario(
    "error_event",
    "Says `words` words (default 3), then reports a failure of its own within the stream (a whole JSON answer: status 529).",
    { words: Schema.optionalKey(Words) }
  ),
  scenario(
    "status",
    "Refuses with the HTTP `status`, the vendor's error type for it, and `message`; 429 says `retry_after_s` (default 1).",
    {
      status: ErrorStatus,
      retry_after_s: Schema.optionalKey(RetryAfter),
      message: Schema.optionalKey(Schema.NonEmptyString)
    }
  ),
  scenario("flaky", "Refuses the first `times` requests (default 1) with `status` (default 529) and `retry_after_s`, then answers as `text` does.", {
    times: Schema.optionalKey(Times),
    status: Schema.optionalKey(ErrorStatus),
    retry_after_s: Schema.optionalKey(RetryAfter)
  }),
  scenario("context_too_long", "Refuses with status 400: the prompt does not fit the context window, in the vendor's words.", {})
] as const

/** Every scenario; its encoded side holds the parameters as the strings that stand in the URL. */
export const ModelScenario = Schema.Union(members)
export type ModelScenario = typeof ModelScenario.Type

export type Type = ModelScenario["type"]

/** One entry per scenario, in the order of the union: for help texts and for tests that visit all. */
export interface Entry {
  readonly type: Type
  readonly description: string
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly required: boolean }>
}

/** Describes every scenario from its schema. */
export const catalogue: ReadonlyArray<Entry> = members.map((member) => ({
  type: member.fields.type.literal,
  description: Schema.resolveAnnotations(member)?.description ?? "",
  parameters: Object.entries(member.fields)
    .filter(([name]) => name !== "type")
    .map(([name, field]) => ({ name, required: !isOptional(field) }))
}))

function isOptional(field: Schema.Constraint): boolean {
  return field.ast.context?.isOptional === true
}

/** What names no scenario, or names one with parameters it does not take. `segment` is the path segment, or the type where there is none. */
export class BadScenario extends Schema.TaggedError<BadScenario>()("BadScenario", {
  segment: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `the scenario "${this.segment}" cannot be played: ${this.problem}`
  }
}

/** `encodeURIComponent` leaves no comma and no equals sign, the two characters that this form gives a meaning. */
const escape = encodeURIComponent

const strict = { onExcessProperty: "error", errors: "all" } as const
const decodeParameters = Schema.decodeUnknownResult(ModelScenario, strict)
const encodeParameters = Schema.encodeUnknownResult(ModelScenario, strict)

const entryOf = (type: string): Entry | undefined => catalogue.find((one) => one.type === type)
const noSuchType = (): string => `there is no scenario of that type; there are ${catalogue.map((one) => one.type).join(", ")}`
const onOneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ")

const spell = (entry: Entry): string =>
  entry.parameters.length === 0
    ? `"${entry.type}" takes no parameters`
    : `"${entry.type}" takes ${entry.parameters.map((p) => p.name + (p.required ? "" : "?")).join(", ")}`

/**
 * Spells a scenario as one path segment. Throws a {@link BadScenario} where code
 * that escaped the type checker has made one that no server plays.
 */
export const encode = (self: ModelScenario): string => {
  const entry = entryOf(self.type)
  if (entry === undefined) throw new BadScenario({ segment: String(self.type), problem: noSuchType() })
  const bad = (problem: string) => new BadScenario({ segment: self.type, problem: `${onOneLine(problem)}; ${spell(entry)}` })
  const encoded = encodeParameters(self)
  if (Result.isFailure(encoded)) throw bad(encoded.failure.message)
  const { type, ...parameters } = encoded.success
  return [
    type,
    ...Object.entries(parameters).flatMap(([name, value]: [string, string | ReadonlyArray<string>]) =>
      (typeof value === "string" ? [value] : value).map((one) => {
        try {
          return `${name}=${escape(one)}`
        } catch {
          throw bad(`"${name}" has half of a surrogate pair, which no URL can carry`)
        }
      })
    )
  ].join(",")
}

const percentDecode = (text: string): Result.Result<string, string> =>
  Result.mapError(
    Result.try(() => decodeURIComponent(text)),
    () => `"${text}" is not percent-encoded UTF-8`
  )

/** Reads a path segment, as it stands in the URL (still percent-encoded). */
export const decode = (segment: string): Result.Result<ModelScenario, BadScenario> => {
  const bad = (problem: string) => Result.fail(new BadScenario({ segment, problem }))
  const [head = "", ...rest] = segment.split(",")
  const entry = entryOf(head)
  if (entry === undefined) return bad(noSuchType())
  const parameters = new Map<string, Array<string>>()
  for (const part of rest) {
    const at = part.indexOf("=")
    if (at <= 0) return bad(`"${part}" is not name=value; ${spell(entry)}`)
    const name = part.slice(0, at)
    const value = percentDecode(part.slice(at + 1))
    if (Result.isFailure(value)) return bad(value.failure)
    if (!entry.parameters.some((one) => one.name === name)) return bad(`it has no parameter "${name}"; ${spell(entry)}`)
    parameters.set(name, [...(parameters.get(name) ?? []), value.success])
  }
  const record: Record<string, unknown> = { type: head }
  for (const [name, values] of parameters) {
    if (values.length > 1 && !(head === "tools" && name === "command")) return bad(`"${name}" is given ${values.length} times`)
    record[name] = values.length === 1 ? values[0] : values
  }
  return Result.mapError(
    decodeParameters(record),
    (error) => new BadScenario({ segment, problem: `${onOneLine(error.message)}; ${spell(entry)}` })
  )
}
