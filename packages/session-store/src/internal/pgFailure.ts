/** What PostgreSQL answers, in the words of a store. */
import { Failure } from "@turnpike/contract"
import type { SqlError } from "effect/sql/SqlError"

/** The SQLSTATE that the server gave: https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const stateOf = (cause: unknown): string | undefined => {
  const code = (cause as { readonly code?: unknown } | null)?.code
  return typeof code === "string" && /^[0-9A-Z]{5}$/u.test(code) ? code : undefined
}

/** Classes in which the connection or the server ended, whatever became of the statement. */
const endings = ["08", "57"]

/** Whether the answer to a commit did not come: what the server refused, it has rolled back. */
export const isInDoubt = ({ reason }: SqlError): boolean => {
  const state = stateOf(reason.cause)
  return state === undefined || endings.some((ending) => state.startsWith(ending))
}

const diskFull = "53100"
const noSuchDatabase = "3D000"

export const pgFailure = (place: string, { message, reason }: SqlError): Failure.Failure => {
  const { cause } = reason
  const state = stateOf(cause)
  const data = state === undefined ? { place } : { place, sqlstate: state }
  const why = cause instanceof Error && cause.message !== "" ? cause.message : message
  if (state === diskFull) return Failure.make("STORE_FULL", `there is no space left for the sessions in ${place}`, { data })
  const cannot = (what: string, remedy: string, retryable: boolean) =>
    Failure.make("STORE_FAILED", `the sessions in ${place} cannot be ${what}: ${why}`, { remedy, retryable, data })
  if (state === noSuchDatabase) return cannot("opened", "Make the database, or name another one.", false)
  switch (reason._tag) {
    case "ConnectionError":
      return cannot("reached", "Check that the server runs and that its address is right.", true)
    case "AuthenticationError":
      return cannot("opened", "Check the user, the password and what the server lets in.", false)
    case "AuthorizationError":
      return cannot("used", "Give the user the rights to the schema and its tables.", false)
    case "LockTimeoutError":
      return cannot("written", "Another process writes them without an end. Look which one it is, and end it.", true)
    default:
      return cannot("read or written", "Look at the server's log; what was acknowledged before is kept.", true)
  }
}
