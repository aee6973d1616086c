/**
 * What to run: one task on one harness.
 *
 * Every field is honoured or refused with a failure that names it. None is
 * ignored.
 */
import * as Schema from "effect/Schema"
import {
  Count,
  Json,
  NonEmptyString,
  NonEmptySystemString,
  SessionId,
  SystemString,
  VariableName
} from "./Scalars.ts"

const absent = (what: string) => `Absent means ${what}.`

/** What to do when the harness no longer has a session that is to be continued. */
export const ResumePolicy = Schema.Literals(["fail", "fresh", "replay"]).annotate({
  identifier: "ResumePolicy",
  description:
    "fail: end with SESSION_LOST; fresh: go on without the history, with a notice; replay: tell the history to a new session, with a notice."
})
export type ResumePolicy = typeof ResumePolicy.Type

export const SessionSpec = Schema.Struct({
  id: Schema.optionalKey(SessionId).annotateKey({ description: absent("a new id") }),
  resume: Schema.optionalKey(ResumePolicy).annotateKey({
    description: "With it the session must exist. " + absent("that the session is begun if it does not exist, and `fail` where it does")
  })
}).annotate({ identifier: "SessionSpec", description: "The session that the task belongs to." })
export type SessionSpec = typeof SessionSpec.Type

export const ToolClass = Schema.Literals(["read", "search", "edit", "execute", "fetch"]).annotate({
  identifier: "ToolClass",
  description:
    "read: look at files; search: find files and text; edit: write files; execute: run commands; fetch: reach the network."
})
export type ToolClass = typeof ToolClass.Type

export const ToolSpec = Schema.Union([
  Schema.Struct({
    allow: Schema.Array(NonEmptyString).annotateKey({
      description:
        "Neutral classes (read, search, edit, execute, fetch; view, grep and glob stand for read and search) or the harness's own tool names, in order. An empty list allows none."
    })
  }),
  Schema.Struct({
    dangerous_all: Schema.Literal(true).annotateKey({
      description: "Every tool that the harness has. Paths and URLs are not widened."
    })
  })
]).annotate({ identifier: "ToolSpec", description: "Which tools the harness may use." })
export type ToolSpec = typeof ToolSpec.Type

export const WorkspaceSpec = Schema.Struct({
  kind: Schema.Literal("local"),
  cwd: Schema.optionalKey(NonEmptySystemString).annotateKey({
    description: "An existing directory; relative to the caller's own. " + absent("the caller's current directory")
  })
}).annotate({ identifier: "WorkspaceSpec", description: "Where the harness works." })
export type WorkspaceSpec = typeof WorkspaceSpec.Type

export const PermissionPolicy = Schema.Literals(["deny", "allow-listed", "ask"]).annotate({
  identifier: "PermissionPolicy",
  description:
    "What is answered when the harness asks whether a tool may run. deny: no, at once; allow-listed: yes where the allow-list holds the tool, no otherwise; ask: ask the person at the terminal."
})
export type PermissionPolicy = typeof PermissionPolicy.Type

export const BackgroundPolicy = Schema.Literals(["wait", "kill"]).annotate({
  identifier: "BackgroundPolicy",
  description:
    "What becomes of tasks that still run when the turn has ended. wait: the run waits for them; kill: they are ended and listed in background_killed."
})
export type BackgroundPolicy = typeof BackgroundPolicy.Type

export const Credentials = Schema.Struct({
  claude: Schema.optionalKey(Schema.NullOr(Schema.Struct({ oauth_token: NonEmptyString }))).annotateKey({
    description: "Contents, not paths. null is the same as absent."
  }),
  codex: Schema.optionalKey(Schema.NullOr(Schema.Struct({ auth_json: NonEmptyString }))).annotateKey({
    description: "Contents, not paths. null is the same as absent."
  })
}).annotate({ identifier: "Credentials", description: "Secrets for the harness. They appear in no output." })
export type Credentials = typeof Credentials.Type

export const ObservabilitySpec = Schema.Struct({
  name: NonEmptyString,
  config: Json
}).annotate({ identifier: "ObservabilitySpec", description: "An observability backend and its own configuration." })
export type ObservabilitySpec = typeof ObservabilitySpec.Type

/** Seconds; with the bound, their milliseconds are within what a double counts exactly. */
const Seconds = Schema.Finite.check(
  Schema.isGreaterThan(0, { expected: "a number of seconds above 0" }),
  Schema.isLessThanOrEqualTo(9_007_199_254_740, { expected: "a number of seconds up to 9007199254740" })
)

export const Limits = Schema.Struct({
  timeout_s: Schema.optionalKey(Schema.NullOr(Seconds)).annotateKey({
    description: "Seconds from the start of the run to its cancellation. Absent and null mean no limit."
  }),
  token_budget: Schema.optionalKey(Schema.NullOr(Count)).annotateKey({
    description: "Tokens that the run may consume. Absent and null mean no limit."
  })
}).annotate({ identifier: "Limits", description: "Where the caller ends the run. There is no limit by default." })
export type Limits = typeof Limits.Type

export const AgentRunSpec = Schema.Struct({
  harness: Schema.optionalKey(NonEmptySystemString).annotateKey({
    description: "The harness to run on. Exactly one of harness and recipe is required."
  }),
  recipe: Schema.optionalKey(NonEmptySystemString).annotateKey({
    description: "The directory of an agent recipe. Exactly one of harness and recipe is required."
  }),
  task: NonEmptyString.annotateKey({ description: "The prompt, passed on unchanged." }),
  input_artifacts: Schema.optionalKey(Schema.Array(NonEmptySystemString)).annotateKey({
    description: "Paths of files that the task is about. " + absent("none")
  }),
  credentials: Schema.optionalKey(Credentials),
  observability: Schema.optionalKey(Schema.Array(ObservabilitySpec)).annotateKey({ description: absent("none") }),
  limits: Schema.optionalKey(Schema.NullOr(Limits)).annotateKey({ description: "Absent and null mean no limits." }),
  session: Schema.optionalKey(SessionSpec).annotateKey({ description: absent("a new session") }),
  model: Schema.optionalKey(NonEmptySystemString).annotateKey({ description: absent("the harness's own choice") }),
  system: Schema.optionalKey(NonEmptyString).annotateKey({
    description: "Instructions added to the harness's own. " + absent("none")
  }),
  tools: Schema.optionalKey(ToolSpec).annotateKey({ description: absent("read and search") }),
  workspace: Schema.optionalKey(WorkspaceSpec).annotateKey({ description: absent("the caller's current directory") }),
  permission: Schema.optionalKey(PermissionPolicy).annotateKey({ description: absent("deny") }),
  background: Schema.optionalKey(BackgroundPolicy).annotateKey({ description: absent("wait") }),
  env: Schema.optionalKey(Schema.Record(VariableName, SystemString)).annotateKey({
    description: "Variables added to the harness's environment. " + absent("none")
  })
}).check(
  Schema.makeFilter(
    (spec) =>
      (spec.harness === undefined) === (spec.recipe === undefined)
        ? "Expected exactly one of harness and recipe"
        : undefined,
    // Strict validators want a required field among the properties beside it.
    {
      toJsonSchema: () => [{
        oneOf: ["harness", "recipe"].map((field) => ({ properties: { [field]: true }, required: [field] }))
      }, true]
    }
  )
).annotate({ identifier: "AgentRunSpec", description: "One task for one harness." })
export type AgentRunSpec = typeof AgentRunSpec.Type
