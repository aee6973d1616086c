/**
 * A run's turn in its session's log.
 *
 * The order is `turn/start`, `inbox/claimed`, `step/start`, the messages, what the
 * turn brings, `step/end`, `turn/end`. Who opens and closes it is either the run
 * itself or the driver of a session that several prompts share.
 */
import { type Failure, type SessionEvent, TurnEvent, type Verdict } from "@turnpike/contract"
import * as Effect from "effect/Effect"
import * as DiscardRequests from "./internal/discardRequests.ts"
import * as Enclosure from "./internal/enclosure.ts"
import * as Prompt from "./Prompt.ts"
import type * as SessionDriver from "./SessionDriver.ts"
import type * as SessionStore from "./SessionStore.ts"

type StoreError = SessionStore.SessionStoreError

export interface TurnLog {
  /** The number that the turn has, or is going to have. */
  readonly turn: number
  readonly trigger: SessionEvent.Trigger
  /**
   * Opens the turn with a prompt and answers what the harness is to be asked, once
   * it is on disk. Where it fails nothing may leave for the harness, and `isOpen`
   * tells whether there is a turn to close.
   */
  readonly begin: (text: string) => Effect.Effect<Prompt.Prompt, StoreError>
  readonly isOpen: () => boolean
  /** Writes one event of the turn. The caller brings steps and calls in balance. */
  readonly append: (event: TurnEvent.TurnEvent) => Effect.Effect<void, StoreError>
  /**
   * Closes the turn, once; on disk when it is done. `failure` is what failed where
   * the verdict does not say it. Does nothing where no turn is open.
   */
  readonly end: (verdict: Verdict.Verdict, failure: Failure.Failure | undefined) => Effect.Effect<void, StoreError>
}

const isTurnEvent: ReadonlySet<string> = new Set(TurnEvent.members.map((member) => member.fields.type.literal))

/** An event of a turn as the log has it; `undefined` for the harness's ending, which becomes the verdict. */
export const bodyOf = (event: TurnEvent.TurnEvent): SessionEvent.Body | undefined => {
  switch (event.type) {
    case "harness/end":
      return undefined
    case "assistant/message":
    case "tool/result":
      return { ...event, surface_op: "append" }
    default:
      return event
  }
}

/** Whether a log's event is what a harness said in a turn, and not a boundary or a message. */
export const isOfTurn = (event: SessionEvent.SessionEvent): event is SessionEvent.SessionEvent & Exclude<TurnEvent.TurnEvent, TurnEvent.TurnEnd> =>
  isTurnEvent.has(event.type)

/** Receipts as one prompt: each text as it is, an empty line between two, the last one's source. */
export const promptOf = (messages: SessionDriver.OpenTurn["messages"]): Prompt.Prompt =>
  Prompt.fromText(messages.map(({ text }) => text).join("\n\n"), messages.at(-1)?.source ?? "user")

const appendTo = (append: SessionDriver.Log["append"]): TurnLog["append"] => (event) =>
  Effect.suspend(() => {
    const body = bodyOf(event)
    return body === undefined ? Effect.void : Effect.asVoid(append(body))
  })

/**
 * A turn that the caller opens for one prompt of its own. It takes with it what
 * waits for the next step, and leaves other prompts where they are.
 */
export const ofPrompt = (options: {
  readonly store: Pick<SessionStore.Service, "receive" | "pending">
  readonly writer: Pick<SessionStore.Writer, "header" | "discard">
  readonly log: SessionDriver.Log
}): TurnLog => {
  const { log, store, writer } = options
  const { id } = writer.header
  const turn = log.lastTurn() + 1
  const trigger = { kind: "message", source: "user" } as const
  return {
    turn,
    trigger,
    begin: (text) =>
      Effect.gen(function*() {
        const { receipt } = yield* store.receive(id, { kind: "followup", text, source: trigger.source })
        const opening = Effect.gen(function*() {
          const { nextStep } = yield* DiscardRequests.heeded(store, writer)
          const messages = [...nextStep, receipt]
          yield* Enclosure.begin(log, trigger, messages)
          return promptOf(messages)
        })
        // Nobody is to find a prompt that waits although its sender was told that it failed. Of one that was claimed this does nothing.
        return yield* Effect.onError(opening, () =>
          Effect.catchCause(writer.discard([receipt.id], "cancelled", "run"), (cause) =>
            Effect.logWarning("a prompt that could not be begun waits in its session's inbox", cause)))
      }),
    isOpen: () => log.openTurn() === turn,
    append: appendTo(log.append),
    end: (verdict, failure) => Enclosure.end(log, verdict, failure)
  }
}

/**
 * A turn that a driver has opened and will close. `close` hands it the verdict
 * and completes when the turn's end is on disk.
 */
export const ofDriver = (
  open: SessionDriver.OpenTurn,
  close: (verdict: Verdict.Verdict) => Effect.Effect<void, StoreError>
): TurnLog => ({
  turn: open.turn,
  trigger: open.trigger,
  begin: () => Effect.succeed(promptOf(open.messages)),
  isOpen: () => true,
  append: appendTo(open.append),
  end: (verdict, failure) =>
    Effect.andThen(
      failure === undefined || verdict.type === "error"
        ? Effect.void
        : open.append({ type: "error", data: { code: failure.code, message: failure.message } }),
      close(verdict)
    )
})

