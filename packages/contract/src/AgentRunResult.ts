/**
 * What came of a run: one honest verdict, and what was found on the way.
 */
import * as Schema from "effect/Schema"
import { Failure } from "./Failure.ts"
import { Count, Json, NonEmptyString, SessionId } from "./Scalars.ts"
import { SessionEvent } from "./SessionEvent.ts"
import { BackgroundTask, Denial } from "./TurnEvent.ts"
import { Usage } from "./Usage.ts"
import { TerminalReason, Verdict } from "./Verdict.ts"

export const AgentRunOutcome = Schema.Struct({
  success: Schema.Boolean.annotate({ description: "True exactly when the reason is success." }),
  summary: Schema.String.annotate({
    description: "The final answer, whole and unchanged, where the run succeeded; one sentence on what happened otherwise."
  })
}).annotate({ identifier: "AgentRunOutcome" })
export type AgentRunOutcome = typeof AgentRunOutcome.Type

/** A process that was found when the session was closed. */
export const ProcessInfo = Schema.Struct({
  pid: Count.annotate({ description: "As the machine that ran the harness numbers it." }),
  command: Schema.String.annotate({ description: "Its command line, bounded, credentials removed." })
}).annotate({ identifier: "ProcessInfo" })
export type ProcessInfo = typeof ProcessInfo.Type

export const ResultSession = Schema.Struct({
  id: SessionId,
  harness: NonEmptyString,
  harness_session_id: Schema.optionalKey(NonEmptyString).annotate({
    description: "The harness's own id; absent where it never named one."
  }),
  resumed: Schema.Boolean,
  turn: Count.annotate({ description: "The number of the run's turn in its session; 0 where no turn began." })
}).annotate({ identifier: "ResultSession" })

export const AgentRunResult = Schema.Struct({
  result: AgentRunOutcome,
  reason: TerminalReason,
  verdict: Verdict,
  session: ResultSession,
  usage: Usage,
  denials: Schema.Array(Denial).annotate({ description: "Tools that did not run because they were not allowed." }),
  background_killed: Schema.Array(BackgroundTask).annotate({
    description: "Declared tasks that were still running when the session was closed."
  }),
  killed: Schema.Array(ProcessInfo).annotate({
    description: "Processes other than the harness's own that had to be killed when the session was closed."
  }),
  survivors: Schema.Array(ProcessInfo).annotate({
    description: "Processes that could not be killed. Empty unless something is wrong."
  }),
  error: Schema.NullOr(Failure).annotate({ description: "null exactly when the outcome's success is true." }),
  session_log: Schema.Array(SessionEvent).annotate({
    description: "The run's part of the session's log, without assistant/chunk: messages sum them up."
  }),
  output_artifacts: Schema.Array(NonEmptyString).annotate({ description: "Paths of files that the run delivers." }),
  observability: Schema.NullOr(Schema.Struct({ name: Schema.String, data: Json })),
  duration_ms: Count.annotate({ description: "Milliseconds from the run's first event to its last." })
}).annotate({ identifier: "AgentRunResult", description: "What came of a run." })
export type AgentRunResult = typeof AgentRunResult.Type
