/**
 * What may be repeated of a harness's event: without the credentials that the
 * run was given, and within bounds. Names and ids stay as they are.
 *
 * Only known values are taken out here, not shapes: tools show source code, and
 * a log that rewrites every `token = …` in it is of no use. But for those values
 * the model's own words stay as they are, byte for byte.
 */
import type { TurnEvent } from "@turnpike/contract"
import type * as Schema from "effect/Schema"
import type * as Harness from "../Harness.ts"
import * as Redaction from "../Redaction.ts"
import * as JsonDepth from "./jsonDepth.ts"
import * as SecretValues from "./secretValues.ts"

/** The most characters of a tool's output that are repeated: 64 Ki. */
export const maxOutputCharacters = 64 * 1024

const textsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" ? [value] : typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : []

const bound = (text: string): string =>
  text.length <= maxOutputCharacters
    ? text
    : `${Redaction.head(text, maxOutputCharacters)}… (${text.length} characters)`

/** Cleans the events of one turn. */
export interface EventText {
  /**
   * What may be told by now. The end of a chunk that may be the beginning of a
   * secret waits for the next chunk of its kind, a message or the turn's end.
   */
  readonly clean: (event: TurnEvent.TurnEvent) => ReadonlyArray<TurnEvent.TurnEvent>
  /** What still waits, in a turn that ends without `harness/end`. */
  readonly rest: () => ReadonlyArray<TurnEvent.TurnEvent>
}

type Chunk = TurnEvent.Of<"assistant/chunk">

/** Makes what cleans the events of one turn. */
export const make = (options: Pick<Harness.SessionOptions, "inheritedEnv" | "env" | "credentials">): EventText => {
  const secrets = [
    ...Redaction.secretsOf(options.inheritedEnv),
    ...Redaction.secretsOf(options.env),
    ...textsOf(options.credentials)
  ]
  const hide = Redaction.values(secrets)
  const known = SecretValues.known(secrets, Redaction.mark)
  /** One sieve for each kind and origin of chunks, with the last chunk that went through it. */
  const sieves = new Map<string, { readonly sieve: SecretValues.Sieve; last: Chunk }>()

  const chunk = (event: Chunk): ReadonlyArray<TurnEvent.TurnEvent> => {
    const key = JSON.stringify({ ...event.data, text: "" })
    const through = sieves.get(key) ?? { sieve: SecretValues.sieve(known, Redaction.mark), last: event }
    sieves.set(key, through)
    through.last = event
    const text = through.sieve.push(event.data.text)
    return text === event.data.text ? [event] : text === "" ? [] : [{ ...event, data: { ...event.data, text } }]
  }

  const rest = (): ReadonlyArray<TurnEvent.TurnEvent> =>
    [...sieves.values()].flatMap(({ last, sieve }) => {
      const text = sieve.end()
      return text === "" ? [] : [{ ...last, data: { ...last.data, text } }]
    })

  // Bounded first, for once: what is too deep to be repeated is too deep to be walked through, and goes as a whole.
  const json = (value: Schema.Json) => Redaction.json(JsonDepth.bound(value), hide)
  const input = (data: { readonly input?: Schema.Json }) => data.input === undefined ? {} : { input: json(data.input) }
  const hideIn = <K extends string>(name: K, data: { readonly [name in K]?: string }): { readonly [name in K]?: string } => {
    const text = data[name]
    return text === undefined ? {} : { [name]: hide(text) } as { readonly [name in K]: string }
  }

  const whole = (event: TurnEvent.TurnEvent): TurnEvent.TurnEvent => {
    switch (event.type) {
      case "assistant/message":
        return { ...event, data: { ...event.data, text: hide(event.data.text) } }
      case "tool/call":
        return { ...event, data: { ...event.data, ...input(event.data) } }
      case "tool/result":
        return event.data.output === undefined
          ? event
          : { ...event, data: { ...event.data, output: bound(hide(event.data.output)) } }
      case "permission/request":
        return {
          ...event,
          data: {
            ...event.data,
            ...input(event.data),
            ...hideIn("description", event.data)
          }
        }
      case "permission/decision":
        return { ...event, data: { ...event.data, ...hideIn("reason", event.data) } }
      case "todo/write":
        return { ...event, data: { todos: event.data.todos.map((todo) => ({ ...todo, content: hide(todo.content) })) } }
      case "retry/scheduled": {
        const { error } = event.data
        return error === undefined
          ? event
          : {
            ...event,
            data: {
              ...event.data,
              error: { ...error, message: hide(error.message), ...(error.data === undefined ? {} : { data: json(error.data) }) }
            }
          }
      }
      case "notice":
        return {
          ...event,
          data: {
            ...event.data,
            message: hide(event.data.message),
            ...(event.data.raw === undefined ? {} : { raw: json(event.data.raw) })
          }
        }
      case "harness/end":
        return {
          ...event,
          data: {
            ...event.data,
            text: hide(event.data.text),
            denials: event.data.denials.map((denial) => ({ ...denial, ...input(denial) })),
            background: event.data.background.map((task) => ({ ...task, ...hideIn("description", task) })),
            ...hideIn("harness_reason", event.data)
          }
        }
      default:
        return event
    }
  }

  return {
    clean: (event) => {
      if (event.type === "assistant/chunk") return chunk(event)
      const cleaned = whole(event)
      return event.type === "assistant/message" || event.type === "harness/end" ? [...rest(), cleaned] : [cleaned]
    },
    rest
  }
}
