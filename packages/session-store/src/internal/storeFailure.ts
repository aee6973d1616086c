/** The failures of a store, in the words that all stores have. */
import { Failure } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"

export type StoreError = SessionStore.SessionStoreError

/** Makes the error of one failure. `facts` replace the code's own remedy and retryability. */
export const failed = (
  code: Failure.FailureCode,
  message: string,
  facts?: Partial<Omit<Failure.Failure, "code" | "message">>
): StoreError => new SessionStore.SessionStoreError({ failure: Failure.make(code, message, facts) })

export const unknown = (id: string): StoreError => failed("SESSION_UNKNOWN", `there is no session ${id}`, { data: { session_id: id } })

export const exists = (id: string): StoreError => failed("SESSION_EXISTS", `there is a session ${id} already`, { data: { session_id: id } })

export const busy = (id: string, { name, since }: SessionStore.Holder): StoreError =>
  failed("SESSION_BUSY", `session ${id} is used by ${name} since ${new Date(since).toISOString()}`, {
    data: { session_id: id, holder: name, since }
  })

export const released = (id: string): StoreError =>
  failed("SESSION_BUSY", `session ${id} is no longer held by this writer`, { data: { session_id: id } })

export const damaged = (id: string, what: string): StoreError =>
  failed("SESSION_DAMAGED", `session ${id}: ${what}`, { data: { session_id: id } })

/** Without what cannot be read, nothing of the session can be. */
export const damagedWhole = (id: string, what: string): StoreError =>
  failed("SESSION_DAMAGED", `session ${id}: ${what}`, {
    remedy: "Nothing was changed. Nothing else of the session can be read without it: restore the sessions from a copy, or delete this one with `turnpike sessions delete`.",
    data: { session_id: id }
  })

/** What is wrong is in the inbox alone. */
export const damagedInbox = (id: string, what: string): StoreError =>
  failed("SESSION_DAMAGED", `session ${id}: ${what}`, {
    remedy: "Nothing was changed. `turnpike sessions fork` begins a new session with the turns of its log; restore its inbox from a copy.",
    data: { session_id: id }
  })

export const unsupported = (id: string, what: string): StoreError =>
  failed("FORMAT_UNSUPPORTED", `session ${id}: ${what}`, { data: { session_id: id } })
