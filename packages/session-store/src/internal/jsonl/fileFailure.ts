/** What a file system answers, in the words of a store. */
import { Failure } from "@turnpike/contract"
import { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import { failed, type StoreError } from "../storeFailure.ts"
import { FileError } from "./files.ts"

/** What failed may succeed later where nothing but the moment was wrong. */
export const fileFailure = ({ code, message, operation, path }: FileError): StoreError => {
  const data = { place: path, ...(code === undefined ? {} : { error: code }) }
  const cannot = (remedy: string, retryable: boolean) =>
    new SessionStore.SessionStoreError({
      failure: Failure.make("STORE_FAILED", `the sessions cannot be kept in ${path} (${operation}): ${message}`, { remedy, retryable, data })
    })
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return new SessionStore.SessionStoreError({ failure: Failure.make("STORE_FULL", `there is no space left for the sessions in ${path}`, { data }) })
    case "EROFS":
    case "EACCES":
    case "EPERM":
      return cannot("Make the directory and its files writable, or name another directory.", false)
    case "EMFILE":
    case "ENFILE":
      return cannot("The system has no file descriptor left; allow more of them, or let less run at once.", true)
    default:
      return cannot("Check the disk and the directory; what was acknowledged before is kept.", true)
  }
}

/** The directory of the store is another one, or none any more. */
export const vanished = (directory: string): StoreError =>
  failed("STORE_FAILED", `the sessions cannot be written: ${directory} was deleted, moved or replaced while it was in use`, {
    retryable: false,
    remedy: "Put the directory back or begin a new one, and start Turnpike again.",
    data: { place: directory }
  })

export const told = <A, R>(work: Effect.Effect<A, FileError | StoreError, R>): Effect.Effect<A, StoreError, R> =>
  Effect.catchIf(work, (error) => error instanceof FileError, (error) => Effect.fail(fileFailure(error)))
