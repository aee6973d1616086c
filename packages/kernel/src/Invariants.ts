/**
 * The companion of development and tests: what holds of every log that Turnpike
 * writes, beyond the rules without which a log is not read.
 *
 * The rules of `LogState` are kept in production too. These here tell of a mistake
 * of whoever writes, and no reader rests on them. A breach is a bug: it is a defect
 * of the append, before anything of it is committed.
 */
import type { SessionEvent } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as SessionDriver from "./SessionDriver.ts"
import type * as SessionLog from "./SessionLog.ts"
import type * as SessionStore from "./SessionStore.ts"

/** What holds, by name. */
export const rules = {
  "in-a-step": "The prompt, and what the turn's own model says and calls, stand in an open step.",
  "prompt-first": "In a turn that a message opened, a message stands before anything of the harness or the model.",
  "one-prompt": "A turn has at most one user/message.",
  "claimed-first": "A message that is a receipt comes after its turn has claimed that receipt, and once.",
  "result-in-its-step": "The result of the turn's own call stands in the step of the call, unless it was made up when the turn was cut off.",
  "no-work-for-injected": "A turn that an injected text opened has no step and no prompt.",
  phases: "A driver is idle, then runs or is in maintenance, and then is idle again; its turns grow; closed is the last."
} as const
export type Rule = keyof typeof rules

export interface Violation {
  readonly rule: Rule
  readonly message: string
}

/** Whoever writes a session's log made a mistake. */
export class InvariantError extends Schema.TaggedError<InvariantError>()("InvariantError", {
  session: Schema.String,
  rule: Schema.Literals(Object.keys(rules) as ReadonlyArray<Rule> as readonly [Rule, ...Array<Rule>]),
  found: Schema.String
}) {
  readonly code = "INVARIANT"
  override get message() {
    return `session ${this.session}: ${this.found} (${this.rule}: ${rules[this.rule]})`
  }
}

/** What is known of the turn that is open. */
export interface State {
  readonly trigger: SessionEvent.Trigger["kind"]
  readonly step: number | undefined
  /** Receipts that were claimed and that no message is yet. */
  readonly unwritten: ReadonlySet<string>
  readonly hasMessage: boolean
  readonly hasPrompt: boolean
  /** The step of each of the turn's own calls that has no result. */
  readonly calls: ReadonlyMap<string, number>
}

type Body = SessionEvent.Body
type Next = Result.Result<State | undefined, Violation>

const breach = (rule: Rule, message: string): Result.Result<never, Violation> => Result.fail({ rule, message })

const isOwn = (data: { readonly origin?: string }): boolean => data.origin === undefined || data.origin === "turn"

/** Whether an event is of the turn's own model: what a background task or a subagent does has no step of its own. */
const isOfModel = (body: Body): boolean => {
  switch (body.type) {
    case "assistant/chunk":
    case "assistant/message":
    case "tool/call":
      return isOwn(body.data)
    default:
      return false
  }
}

const isMessage = (body: Body): body is Extract<Body, { readonly type: "user/message" | "context/message" | "steering/message" }> =>
  body.type === "user/message" || body.type === "context/message" || body.type === "steering/message"

const message = (state: State, body: Extract<Body, { readonly type: "user/message" | "context/message" | "steering/message" }>): Next => {
  const { receipt } = body.data
  const isPrompt = body.type === "user/message"
  if (isPrompt && state.trigger === "injection") return breach("no-work-for-injected", "a prompt stands in the turn of an injected text")
  if (isPrompt && state.hasPrompt) return breach("one-prompt", "a turn has a second user/message")
  if (isPrompt && state.step === undefined) return breach("in-a-step", "user/message stands outside a step")
  if (receipt !== undefined && !state.unwritten.has(receipt)) {
    return breach("claimed-first", `${body.type} is receipt ${JSON.stringify(receipt)}, which its turn has not claimed, or which another message is`)
  }
  const unwritten = new Set(state.unwritten)
  if (receipt !== undefined) unwritten.delete(receipt)
  return Result.succeed({ ...state, unwritten, hasMessage: true, hasPrompt: state.hasPrompt || isPrompt })
}

const result = (state: State, body: Extract<Body, { readonly type: "tool/result" }>): Next => {
  const { call_id, error_code } = body.data
  const step = state.calls.get(call_id)
  if (step === undefined || body.surface_op !== "append") return Result.succeed(state)
  if (error_code === undefined && step !== state.step) {
    return breach("result-in-its-step", `call ${JSON.stringify(call_id)} of step ${step} has its result ${state.step === undefined ? "outside a step" : `in step ${state.step}`}`)
  }
  const calls = new Map(state.calls)
  calls.delete(call_id)
  return Result.succeed({ ...state, calls })
}

/**
 * The state after one more event of a log that keeps its rules, or what is wrong
 * with it. `undefined` is the state where no turn is open.
 */
export const next = (state: State | undefined, body: Body): Next => {
  if (body.type === "turn/start") {
    const { kind } = body.data.trigger
    return Result.succeed({ trigger: kind, step: undefined, unwritten: new Set(), hasMessage: false, hasPrompt: false, calls: new Map() })
  }
  // Outside a turn the log itself refuses everything.
  if (state === undefined || body.type === "turn/end") return Result.succeed(undefined)
  if (isOfModel(body)) {
    if (state.step === undefined) return breach("in-a-step", `${body.type} stands outside a step`)
    if (state.trigger === "message" && !state.hasMessage) return breach("prompt-first", `${body.type} stands before the turn's first message`)
  }
  if (isMessage(body)) return message(state, body)
  switch (body.type) {
    case "inbox/claimed":
      return Result.succeed({ ...state, unwritten: new Set([...state.unwritten, ...body.data.ids]) })
    case "step/start":
      return state.trigger === "injection"
        ? breach("no-work-for-injected", "a step stands in the turn of an injected text")
        : Result.succeed({ ...state, step: body.data.step })
    case "step/end":
      return Result.succeed({ ...state, step: undefined })
    case "tool/call":
      return isOwn(body.data) && state.step !== undefined
        ? Result.succeed({ ...state, calls: new Map(state.calls).set(body.data.call_id, state.step) })
        : Result.succeed(state)
    case "tool/result":
      return result(state, body)
    default:
      return Result.succeed(state)
  }
}

/**
 * The log with these rules in front of it, and with what it holds already looked
 * at: it is as it would be had it been guarded from its beginning. A body that
 * breaks one makes `append` die with an {@link InvariantError}, and enters nothing.
 * Only what goes through the answer is guarded, each log by itself; its scope ends
 * the guard.
 */
export const guard = (
  log: SessionLog.SessionLog,
  history: Stream.Stream<SessionEvent.SessionEvent, SessionStore.SessionStoreError>
): Effect.Effect<SessionLog.SessionLog, SessionStore.SessionStoreError, Scope.Scope> =>
  Effect.gen(function*() {
    const session = log.writer.header.id
    let state: State | undefined
    const take = (event: SessionEvent.SessionEvent): Effect.Effect<void> =>
      Effect.suspend(() => {
        const after = next(state, event)
        if (Result.isFailure(after)) return Effect.die(new InvariantError({ session, rule: after.failure.rule, found: after.failure.message }))
        state = after.success
        return Effect.void
      })
    yield* Stream.runForEach(history, take)
    yield* log.observe(take)
    const guarded = <A, E>(bodies: ReadonlyArray<SessionEvent.Body>, append: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        let after = state
        for (const body of bodies) {
          const taken = next(after, body)
          if (Result.isFailure(taken)) return Effect.die(new InvariantError({ session, rule: taken.failure.rule, found: taken.failure.message }))
          after = taken.success
        }
        return append
      })
    return {
      ...log,
      append: (body) => guarded([body], log.append(body)),
      appendAll: (bodies) => guarded(bodies, log.appendAll(bodies))
    }
  })

/** What is wrong with a driver that goes from one phase to another; `undefined` where it may. */
export const phaseViolation = (before: SessionDriver.Phase, after: SessionDriver.Phase): Violation | undefined => {
  const wrong = (message: string): Violation => ({ rule: "phases", message })
  if (before._tag === "Closed") return wrong(`a driver that is closed becomes ${after._tag}`)
  if (after._tag === "Closed") return undefined
  const numberOf = (phase: Exclude<SessionDriver.Phase, { readonly _tag: "Closed" }>) => phase._tag === "Running" ? phase.turn : phase.lastTurn
  // A turn whose beginning could not be written was none.
  const least = before._tag === "Running" ? before.turn - 1 : before.lastTurn
  if (numberOf(after) < least) return wrong(`turn ${numberOf(after)} comes after turn ${numberOf(before)}`)
  if (before._tag === after._tag && numberOf(before) === numberOf(after)) return wrong(`a driver that is ${before._tag} becomes ${after._tag}`)
  if (before._tag === "Maintenance" && after._tag !== "Idle") return wrong(`a driver in maintenance becomes ${after._tag} without being idle`)
  if (before._tag === "Running" && after._tag === "Maintenance") return wrong("a driver that runs is in maintenance")
  if (before._tag === "Idle" && after._tag === "Idle") return wrong("a driver is idle, and idle again after a turn that nobody saw")
  return undefined
}
