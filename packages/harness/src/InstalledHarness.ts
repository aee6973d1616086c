/**
 * A harness whose program its vendor has people install, with a warm session.
 *
 * What differs between such harnesses is a description of the program, a plan of
 * what can be honoured, and a dialect.
 */
import type { AgentRunSpec, Capabilities } from "@turnpike/contract"
import { type Harness, HarnessError } from "@turnpike/kernel"
import { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Dialect from "./Dialect.ts"
import * as InstalledProgram from "./InstalledProgram.ts"
import * as WarmSession from "./WarmSession.ts"

export interface Parts<Plan, State> {
  readonly capabilities: Capabilities.Capabilities
  readonly program: InstalledProgram.Description
  /** The credentials of a specification that the program can sign in with. Others are refused. */
  readonly credentials?: keyof AgentRunSpec.Credentials
  /** Works out how a session's options are honoured, and fails with `Unsupported` for one that cannot be. Starts nothing. */
  readonly plan: (session: Harness.SessionOptions) => Effect.Effect<Plan, HarnessError.HarnessError>
  readonly dialect: (session: Harness.SessionOptions, plan: Plan, program: InstalledProgram.Identified) => Dialect.Dialect<State>
  /** What else is worth knowing on this machine: sign-in first, then traps. Starts no session and spends no token. */
  readonly findings: (
    asked: Harness.DiagnosisOptions,
    program: InstalledProgram.Identified,
    supervisor: Supervisor.Service
  ) => Effect.Effect<ReadonlyArray<Harness.Finding>>
}

/** Refuses what none of these harnesses can honour. */
const refuse = ({ credentials, program: { harness, product } }: Pick<Parts<unknown, unknown>, "credentials" | "program">, session: Harness.SessionOptions) =>
  Effect.suspend(() => {
    const foreign = Object.entries(session.credentials ?? {}).find(([name, value]) => value != null && name !== credentials)
    if (foreign !== undefined) return Effect.fail(HarnessError.unsupported(harness, `credentials.${foreign[0]}`, `${product} cannot sign in with it`))
    return session.model !== undefined && session.model.trim() === "" ? Effect.fail(HarnessError.unsupported(harness, "model", "it is blank")) : Effect.void
  })

/** Makes the harness. Its sessions start their processes through the supervisor. */
export const make = <Plan, State>(parts: Parts<Plan, State>): Effect.Effect<Harness.Harness, never, Supervisor.Supervisor> =>
  Effect.map(Supervisor.Supervisor, (supervisor) => {
    const program = InstalledProgram.make(parts.program, supervisor)
    const planned = (session: Harness.SessionOptions) => Effect.andThen(refuse(parts, session), parts.plan(session))
    return {
      name: parts.program.harness,
      capabilities: parts.capabilities,
      check: Effect.fn("InstalledHarness.check")(function*(session: Harness.SessionOptions) {
        yield* planned(session)
        const { file, version } = yield* program.identify(session)
        return { program: file, version }
      }),
      open: Effect.fn("InstalledHarness.open")(function*(session: Harness.SessionOptions) {
        const plan = yield* planned(session)
        const identified = yield* program.identify(session)
        return yield* WarmSession.open({
          sessionId: session.sessionId,
          dialect: parts.dialect(session, plan, identified),
          spawn: supervisor.spawn,
          resume: session.resume,
          permission: session.permission,
          redact: session.redact
        })
      }),
      diagnose: (asked: Harness.DiagnosisOptions) =>
        program.diagnose(asked, (identified) => parts.findings(asked, identified, supervisor))
    }
  })
