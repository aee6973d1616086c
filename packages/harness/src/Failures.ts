/**
 * The failures of a harness's process in the contract's words.
 */
import { Failure } from "@turnpike/contract"
import { HarnessError, Redaction } from "@turnpike/kernel"
import type { Child, ProcessError } from "@turnpike/process"
import type * as Dialect from "./Dialect.ts"
import type * as Frame from "./Frame.ts"

/** Tells how a process ended, as the end of a sentence. */
export const describeExit = (exit: Child.ProcessExit | undefined): string =>
  exit === undefined
    ? "still runs"
    : exit.code !== null
    ? `exited with code ${exit.code}`
    : `was ended by ${exit.signal ?? "an unknown signal"}`

/** Why a program could not be started. */
export const ofProcess = (error: ProcessError.ProcessError): Failure.Failure => {
  switch (error.reason._tag) {
    case "ProgramNotFound":
      return Failure.make("HARNESS_NOT_FOUND", error.message)
    case "ContainmentUnavailable":
    case "ContainmentFailed":
      return Failure.make("CONTAINMENT_UNAVAILABLE", error.message)
    default:
      return Failure.make("SPAWN_FAILED", error.message)
  }
}

export const notStarted = (error: ProcessError.ProcessError): HarnessError.HarnessError => HarnessError.notStarted(ofProcess(error))

/** All that a process said which nobody understood, its output before its errors. */
export const said = (evidence: Dialect.Evidence): string =>
  [
    ...evidence.received.map((item) =>
      item._tag === "Frame" ? JSON.stringify(item.frame) : item._tag === "Unparsed" ? item.text : `(a line of ${item.bytesTotal} bytes)`
    ),
    evidence.stderr
  ].filter((text) => text.trim() !== "").join("\n")

/** Describes a process that failed its handshake, for a dialect that knows no better. */
export const handshake = (harness: string, evidence: Dialect.Evidence, redact: Redaction.Redactor): HarnessError.HarnessError => {
  const speaks = evidence.received.some((item) => item._tag === "Frame")
  const message = Redaction.failureTail({
    what: `the program of ${harness}`,
    exit: evidence.late ? "did not answer in time" : `${describeExit(evidence.exit)} before it was ready`,
    output: said(evidence),
    redact
  })
  return HarnessError.notStarted(Failure.make(speaks ? "HANDSHAKE_FAILED" : "HARNESS_NOT_A_HARNESS", message))
}

/**
 * Why a process whose version told what it is did not become ready; `undefined`
 * while it still may. What it said is then about this start, whatever it was.
 */
export const notReady = (product: string, evidence: Dialect.Evidence, redact: Redaction.Redactor): HarnessError.HarnessError | undefined =>
  evidence.exit === undefined && !evidence.late
    ? undefined
    : HarnessError.notStarted(Failure.make("HANDSHAKE_FAILED", handshake(product, evidence, redact).failure.message))

/** A program that answers each request with the request itself, as `cat` does. */
export const echo = (product: string): HarnessError.HarnessError =>
  HarnessError.notStarted(Failure.make("HARNESS_NOT_A_HARNESS", `the program gives back what it is told; it is not ${product}`))

/** Describes a record that could not be read and without which the turn cannot go on. */
export const unread = (harness: string, item: Exclude<Frame.Received, { _tag: "Frame" }>): Failure.Failure =>
  Failure.make(
    "HARNESS_PROTOCOL",
    `a record by which ${harness} ends its turn or asks for an answer ${
      item._tag === "Oversize" ? `has ${item.bytesTotal} bytes, which is over the bound` : `of ${item.bytes.length} bytes is no JSON`
    }; its process was stopped, and the session can be continued`,
    { remedy: "Run again; a notice has the beginning of the record. If it happens again, check the harness's version with `turnpike doctor`." }
  )

/** Describes a process that went away in the middle of a turn, for a dialect that knows no better. */
export const death = (harness: string, evidence: Dialect.Evidence, redact: Redaction.Redactor): Failure.Failure =>
  Failure.make(
    "HARNESS_FAILED",
    Redaction.failureTail({
      what: harness,
      exit: `${describeExit(evidence.exit)} in the middle of the turn`,
      output: said(evidence),
      redact
    }),
    {
      data: {
        exit_code: evidence.exit?.code ?? null,
        signal: evidence.exit?.signal ?? null
      }
    }
  )
