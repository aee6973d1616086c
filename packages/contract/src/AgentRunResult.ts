/**
 * What came of a run: one honest verdict, and what was found on the way.
 */
import * as Schema from "effect/Schema"
import { Failure } from "./Failure.ts"
import { Count, Json, NonEmptyString, NonEmptySystemString, SessionId } from "./Scalars.ts"
import { SessionEvent } from "./SessionEvent.ts"
import { BackgroundTask, Denial } from "./TurnEvent.ts"
import { Usage } from "./Usage.ts"
import { consequences, failureOf, TerminalReason, Verdict } from "./Verdict.ts"

export const AgentRunOutcome = Schema.Struct({
  success: Schema.Boolean.annotateKey({ description: "True exactly when the reason is success." }),
  summary: Schema.String.annotateKey({
    description: "The final answer, whole and unchanged, where the run succeeded; one sentence on what happened otherwise."
  })
}).annotate({ identifier: "AgentRunOutcome", description: "Whether the run did what it was asked, and its answer." })
export type AgentRunOutcome = typeof AgentRunOutcome.Type

export const ProcessInfo = Schema.Struct({
  pid: Count.annotateKey({ description: "As the machine that ran the harness numbers it." }),
  command: Schema.String.annotateKey({ description: "Its command line, bounded, credentials removed." })
}).annotate({ identifier: "ProcessInfo", description: "A process that was found when the session was closed." })
export type ProcessInfo = typeof ProcessInfo.Type

export const ResultSession = Schema.Struct({
  id: SessionId,
  harness: NonEmptyString,
  harness_session_id: Schema.optionalKey(NonEmptyString).annotateKey({
    description: "The harness's own id; absent where it never named one."
  }),
  resumed: Schema.optionalKey(Schema.Literals(["native", "replayed", "fresh"])).annotateKey({
    description:
      "How a session that had turns before went on. native: the harness had its history; replayed: a new session of the harness was told it; fresh: a new session of the harness knows nothing of it. Absent in a new session, and where no turn got that far."
  }),
  turn: Count.annotateKey({ description: "The number of the run's turn in its session; 0 where no turn began." })
}).annotate({ identifier: "ResultSession", description: "The session that the run belonged to." })

interface Ending {
  readonly result: AgentRunOutcome
  readonly reason: TerminalReason
  readonly verdict: Verdict
  readonly error: Failure | null
}

const successDisagrees = ({ error, reason, result, verdict }: Ending) => {
  if ((reason === "success") !== result.success) {
    return { path: ["reason"], issue: "Expected success exactly where result.success is true" }
  }
  if ((verdict.type === "completed") !== result.success) {
    return { path: ["verdict", "type"], issue: "Expected completed exactly where result.success is true" }
  }
  if ((error === null) !== result.success) {
    return { path: ["error"], issue: "Expected null exactly where result.success is true" }
  }
  return undefined
}

/** The four ways in which a result says that it is a success agree. */
const successAgrees = Schema.makeFilter<Ending>(successDisagrees, {
  toJsonSchema: () => [{
    if: { type: "object", properties: { result: { type: "object", properties: { success: { const: true } } } } },
    then: {
      properties: {
        reason: { const: "success" },
        error: { type: "null" },
        verdict: { type: "object", properties: { type: { const: "completed" } } }
      }
    },
    else: {
      properties: {
        reason: { not: { const: "success" } },
        error: { not: { type: "null" } },
        verdict: { type: "object", properties: { type: { not: { const: "completed" } } } }
      }
    }
  }, true]
})

/**
 * Reason and error are those that follow from the verdict: the table of
 * `Verdict`, which JSON Schema leaves to the reader.
 */
const followsFromVerdict = Schema.makeFilter<Ending>((ending) => {
  if (successDisagrees(ending) !== undefined) return undefined
  const reason = consequences(ending.verdict).reason
  if (ending.reason !== reason) {
    return { path: ["reason"], issue: `Expected ${reason}, which follows from the verdict` }
  }
  const code = failureOf(ending.verdict)?.code
  return ending.error?.code === code
    ? undefined
    : { path: ["error", "code"], issue: `Expected ${code}, which follows from the verdict` }
}, { toJsonSchema: () => [{}, true] })

export const AgentRunResult = Schema.Struct({
  result: AgentRunOutcome,
  reason: TerminalReason,
  verdict: Verdict,
  session: ResultSession,
  usage: Usage,
  denials: Schema.Array(Denial).annotateKey({ description: "Tools that did not run because they were not allowed." }),
  background_killed: Schema.Array(BackgroundTask).annotateKey({
    description: "Declared tasks that were still running when the session was closed."
  }),
  killed: Schema.Array(ProcessInfo).annotateKey({
    description: "Processes other than the harness's own that had to be killed when the session was closed."
  }),
  survivors: Schema.Array(ProcessInfo).annotateKey({
    description: "Processes that could not be killed. Empty unless something is wrong."
  }),
  error: Schema.NullOr(Failure).annotateKey({ description: "null exactly when the outcome's success is true." }),
  session_log: Schema.Array(SessionEvent).annotateKey({
    description: "The run's turn in the session's log, without assistant/chunk: messages sum them up. seq is the position in that log. Of a turn of more than 100,000 events the first are here, with what ends them; a notice in the stream tells."
  }),
  output_artifacts: Schema.Array(NonEmptySystemString).annotateKey({ description: "Paths of files that the run delivers." }),
  observability: Schema.NullOr(Schema.Struct({ name: Schema.String, data: Json })).annotateKey({
    description: "What an observability backend gave back; null where there was none."
  }),
  duration_ms: Count.annotateKey({ description: "Milliseconds from the run's first event to its last." })
}).check(successAgrees, followsFromVerdict).annotate({ identifier: "AgentRunResult", description: "What came of a run." })
export type AgentRunResult = typeof AgentRunResult.Type
