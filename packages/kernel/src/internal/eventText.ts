/**
 * What may be repeated of a harness's event: without the credentials that the
 * run was given, and within bounds.
 *
 * Only known values are taken out here, not shapes: tools show source code, and
 * a log that rewrites every `token = …` in it is of no use. The model's own
 * words stay as they are, byte for byte.
 */
import type { AgentRunSpec, TurnEvent } from "@turnpike/contract"
import type * as Schema from "effect/Schema"
import type * as Harness from "../Harness.ts"
import * as Redaction from "../Redaction.ts"

/** The most characters of a tool's output that are repeated: 64 Ki. */
export const maxOutputCharacters = 64 * 1024

/** Every text within a JSON document that is long enough to be a secret of its own. */
const textsOf = (json: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const walk = (value: unknown): void => {
    if (typeof value === "string" && value.length >= 16) found.push(value)
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(walk)
  }
  try {
    walk(JSON.parse(json))
  } catch {
    // Not JSON: it is a secret as a whole.
  }
  return found
}

const secretsOf = (credentials: AgentRunSpec.Credentials | undefined): ReadonlyArray<string> => {
  const claude = credentials?.claude?.oauth_token
  const codex = credentials?.codex?.auth_json
  return [...(claude === undefined ? [] : [claude]), ...(codex === undefined ? [] : [codex, ...textsOf(codex)])]
}

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
    ...secretsOf(options.credentials)
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
