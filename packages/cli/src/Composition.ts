/**
 * Puts together what a run or a conversation needs, from a command line and this
 * process's environment.
 */
import type { AgentRunSpec } from "@turnpike/contract"
import { Printable } from "@turnpike/channel-terminal"
import { type ChannelError, Permission, Redaction, RunPreparation, SessionStore, ToolAllowlist } from "@turnpike/kernel"
import { Orphans, type Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import { type Given, isOn, one } from "./CommandLine.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as HarnessRegistry from "./HarnessRegistry.ts"
import * as LastWords from "./LastWords.ts"
import * as NewDirectory from "./NewDirectory.ts"
import { fromFailure, refuse, type Refusal } from "./Refusal.ts"
import * as SpecInput from "./SpecInput.ts"
import * as Store from "./Store.ts"

/** This process's environment. */
export const environment = (): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]))

/** What this environment and this specification hold as secrets. */
const secrets = (spec?: AgentRunSpec.AgentRunSpec): ReadonlyArray<string> => [
  ...Redaction.secretsOf(environment()),
  ...Redaction.secretsOf(spec?.env ?? {}),
  ...Object.values(spec?.credentials ?? {}).flatMap((secret) => secret === null ? [] : Object.values(secret))
]

/** Takes these secrets out of text, and whatever else looks like one. */
export const redactor = (spec?: AgentRunSpec.AgentRunSpec): Redaction.Redactor => Redaction.withSecrets(secrets(spec))

/** Writes a sentence for people to standard error. A reader that is gone changes nothing. */
export const say = (text: string): void => {
  process.stderr.write(`${Printable.printable(text)}\n`)
}

/** What is wrong with standard output, without the name of the port that says so. */
export const detail = ({ message, reason }: ChannelError.ChannelError): string => reason._tag === "Publish" ? reason.detail : message

/** Tells why a command could not do what was asked. */
export const tell = ({ failure }: Refusal, redact: Redaction.Redactor = redactor()): void => {
  process.stderr.write(
    LastWords.format({
      code: failure.code,
      message: Printable.printable(redact(failure.message)),
      remedy: Printable.printable(redact(failure.remedy))
    })
  )
}

/** A path where it is written as one, made absolute: the shell's directory counts, not the harness's. */
export const located = (text: string): string => text.includes("/") || text.includes(path.sep) ? path.resolve(text) : text

const scenario = (given: Given): string | undefined => {
  const text = one(given, "scenario")
  return text === undefined ? undefined : text.endsWith(".json") ? path.resolve(text) : located(text)
}

export interface Options {
  /** The command's name, for those who find the session held. */
  readonly command: "run" | "chat"
  readonly given: Given
  readonly spec: AgentRunSpec.AgentRunSpec
  /** Who is asked where the policy is `ask`; absent where there is nobody. */
  readonly ask: Permission.Decider | undefined
  readonly redact: Redaction.Redactor
}

const decider = (policy: AgentRunSpec.PermissionPolicy, ask: Permission.Decider | undefined): Effect.Effect<Permission.Decider, Refusal> =>
  policy !== "ask"
    ? Effect.succeed(Permission.fromPolicy(policy))
    : ask !== undefined
    ? Effect.succeed(ask)
    : Effect.fail(
      refuse("UNSUPPORTED", "permission: ask needs a person at a terminal, and --format text", {
        remedy: "Use --permission deny or --permission allow-listed, or run it on a terminal."
      })
    )

/**
 * Checks everything that can be checked before something runs, and holds the
 * session. A refusal leaves nothing behind.
 */
export const prepare = (
  options: Options
): Effect.Effect<RunPreparation.Prepared, Refusal, Supervisor.Supervisor | Scope.Scope> =>
  Effect.gen(function*() {
    const { given, spec } = options
    if (spec.harness === undefined) {
      return yield* refuse("NOT_AVAILABLE", "recipe is not available in this version of Turnpike", { data: { field: "recipe" } })
    }
    const harness = yield* HarnessRegistry.load(spec.harness, { scenario: scenario(given) })
    const permission = yield* decider(spec.permission ?? "deny", options.ask)
    const cwd = yield* SpecInput.directory(spec)
    const dataDirectory = yield* DataDirectory.open(DataDirectory.choose(one(given, "data-dir"), environment()))
    const newSessionId = randomUUID()
    const program = one(given, "program")
    const configDir = isOn(given, "isolated")
      ? path.join(dataDirectory, "sessions", spec.session?.id ?? newSessionId, "settings")
      : undefined
    const store = yield* Store.open(dataDirectory)
    const prepared = yield* RunPreparation.prepare({
      spec,
      harness,
      newSessionId,
      holder: Store.holder(options.command),
      session: {
        cwd,
        model: spec.model,
        system: spec.system,
        tools: ToolAllowlist.fromSpec(spec.tools),
        permission,
        inheritedEnv: environment(),
        env: spec.env ?? {},
        credentials: spec.credentials,
        program: program === undefined ? undefined : located(program),
        configDir,
        redact: options.redact
      }
    }).pipe(
      Effect.provideService(SessionStore.SessionStore, store),
      Effect.mapError((error) => fromFailure(error.failure))
    )
    if (configDir !== undefined) {
      yield* Effect.try({
        try: () => NewDirectory.make(configDir),
        catch: (cause) => DataDirectory.unusable(`the directory ${configDir} cannot be made`, cause)
      })
    }
    return prepared
  })

/** Kills what dead owners left behind, and says so. Never fails. */
export const reap = (redact: Redaction.Redactor): Effect.Effect<void> =>
  Effect.map(Orphans.reap({ redact }), ({ killed, survivors }) => {
    const list = (processes: typeof killed) => processes.map(({ command, pid }) => `${pid} ${command}`).join("; ")
    if (killed.length > 0) say(`turnpike: killed ${killed.length} left over from a run whose owner died: ${list(killed)}`)
    if (survivors.length > 0) say(`turnpike: ${survivors.length} left over from a run whose owner died could not be killed: ${list(survivors)}`)
  })
