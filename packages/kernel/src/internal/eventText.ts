/**
 * What may be repeated of a harness's event: without the credentials that the
 * run was given, and within bounds.
 *
 * Only known values are taken out here, not shapes: tools show source code, and
 * a log that rewrites every `token = …` in it is of no use. The model's own
 * words stay as they are, byte for byte.
 */
import type { TurnEvent } from "@turnpike/contract"
import type * as Schema from "effect/Schema"
import type * as Harness from "../Harness.ts"
import * as Redaction from "../Redaction.ts"

/** The most characters of a tool's output that are repeated: 64 Ki. */
export const maxOutputCharacters = 64 * 1024

const textsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" ? [value] : typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : []

const bound = (text: string): string =>
  text.length <= maxOutputCharacters
    ? text
    : `${Redaction.head(text, maxOutputCharacters)}… (${text.length} characters)`

/** Makes the function that cleans the events of one session. */
export const make = (
  options: Pick<Harness.SessionOptions, "inheritedEnv" | "env" | "credentials">
): (event: TurnEvent.TurnEvent) => TurnEvent.TurnEvent => {
  const hide = Redaction.values([
    ...Redaction.secretsOf(options.inheritedEnv),
    ...Redaction.secretsOf(options.env),
    ...textsOf(options.credentials)
  ])
  const input = (data: { readonly input?: Schema.Json }) =>
    data.input === undefined ? {} : { input: Redaction.json(data.input, hide) }

  return (event) => {
    switch (event.type) {
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
            ...(event.data.description === undefined ? {} : { description: hide(event.data.description) })
          }
        }
      case "notice":
        return {
          ...event,
          data: {
            ...event.data,
            message: hide(event.data.message),
            ...(event.data.raw === undefined ? {} : { raw: Redaction.json(event.data.raw, hide) })
          }
        }
      case "harness/end":
        return {
          ...event,
          data: { ...event.data, denials: event.data.denials.map((denial) => ({ ...denial, ...input(denial) })) }
        }
      default:
        return event
    }
  }
}
