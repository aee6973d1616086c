/**
 * The harnesses that the binary knows, each loaded when it is asked for.
 */
import type { Harness } from "@turnpike/kernel"
import type { Supervisor } from "@turnpike/process"
import * as Effect from "effect/Effect"
import { quote } from "./CommandLine.ts"
import { refuse, type Refusal } from "./Refusal.ts"
import { nearest } from "./Suggestion.ts"

export interface Choice {
  /** What the scripted harness plays; absent for its demonstration. */
  readonly scenario?: string | undefined
}

type Load = (choice: Choice) => Promise<Effect.Effect<Harness.Harness, never, Supervisor.Supervisor>>

const loaders = {
  claude: async () => {
    const { ClaudeHarness } = await import("@turnpike/harness-claude")
    return ClaudeHarness.make()
  },
  codex: async () => {
    const { CodexHarness } = await import("@turnpike/harness-codex")
    return CodexHarness.make()
  },
  copilot: async () => {
    const { CopilotHarness } = await import("@turnpike/harness-copilot")
    return CopilotHarness.make()
  },
  scripted: async ({ scenario }) => {
    const { ScriptedHarness } = await import("@turnpike/harness-scripted")
    return ScriptedHarness.make(scenario === undefined ? {} : { scenario })
  }
} as const satisfies Record<string, Load>

type Name = keyof typeof loaders

/** All names, those of real agents first. */
export const names = Object.keys(loaders) as ReadonlyArray<Name>

/** All but the one for demonstrations, which is no agent. */
export const agents = names.filter((name) => name !== "scripted")

const isName = (name: string): name is Name => Object.hasOwn(loaders, name)

/** Loads a harness by its name. Fails with `HARNESS_UNKNOWN`, or with `UNSUPPORTED` for a choice that it does not have. */
export const load = (name: string, choice: Choice = {}): Effect.Effect<Harness.Harness, Refusal, Supervisor.Supervisor> =>
  Effect.suspend(() => {
    if (!isName(name)) {
      const meant = nearest(name, names)
      return Effect.fail(
        refuse("HARNESS_UNKNOWN", `there is no harness ${quote(name)}`, {
          remedy: `${meant === undefined ? "" : `Did you mean ${meant}? `}Choose one of ${names.join(", ")}; \`turnpike doctor\` says which work here.`
        })
      )
    }
    if (choice.scenario !== undefined && name !== "scripted") {
      return Effect.fail(
        refuse("UNSUPPORTED", `--scenario is for the scripted harness; ${name} plays none`, {
          remedy: "Leave out --scenario, or use --harness scripted."
        })
      )
    }
    return Effect.flatten(Effect.promise(() => loaders[name](choice)))
  })
