/**
 * `turnpike sessions delete`: deletes sessions with their logs and inboxes.
 */
import { KeyboardInput, Printable } from "@turnpike/channel-terminal"
import type { Scalars } from "@turnpike/contract"
import type { SessionStore } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Given, isOn } from "../CommandLine.ts"
import * as Composition from "../Composition.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { refuse, type Refusal } from "../Refusal.ts"
import * as Sessions from "./Sessions.ts"
import * as SessionsProgram from "./SessionsProgram.ts"
import { brief } from "./TurnFacts.ts"

const call = (given: Given): Sessions.Call => ({ command: "sessions delete", given })

/** A session that is to go. */
interface Doomed {
  readonly id: Scalars.SessionId
  /** Absent where its header cannot be read; it can be deleted all the same. */
  readonly summary: SessionStore.Summary | undefined
}

/** Looks at all of them before one is touched. */
const examine = (given: Given, store: SessionStore.Service, ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Doomed>, SessionsProgram.Problem> =>
  Effect.gen(function*() {
    const wanted = new Set(ids)
    const doomed = yield* Effect.forEach(wanted, (id) =>
      Effect.map(
        Sessions.among(call(given), store, id),
        ({ id }) => id
      ).pipe(
        // What cannot be read can be deleted.
        Effect.catchIf((error) => error._tag === "SessionStoreError" && Sessions.isUnreadable(error), () => Effect.succeed(id as Scalars.SessionId))
      ))
    const summaries = new Map<string, SessionStore.Summary>()
    let left = wanted.size
    yield* Stream.runForEach(
      Stream.takeUntil(Stream.filter(store.list, ({ header }) => wanted.has(header.id)), () => --left === 0),
      (summary) => Effect.sync(() => summaries.set(summary.header.id, summary))
    ).pipe(
      // One that is damaged ends the list. Who is held is refused by the store as well.
      Effect.catchIf(Sessions.isUnreadable, () => Effect.void)
    )
    return doomed.map((id) => ({ id, summary: summaries.get(id) }))
  })

const describe = ({ id, summary }: Doomed): string =>
  summary === undefined
    ? `  ${id}, which cannot be read`
    : `  ${id}: ${summary.turns} turn${summary.turns === 1 ? "" : "s"}${summary.pending === 0 ? "" : `, ${summary.pending} waiting`}${
      summary.header.title === undefined ? "" : `, ${brief(summary.header.title)}`
    }, ${summary.header.cwd}`

/** Asks the person at the terminal; `undefined` where the answer is Ctrl-C. */
const confirm = (doomed: ReadonlyArray<Doomed>): Effect.Effect<boolean | undefined, Refusal> =>
  Effect.gen(function*() {
    if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) {
      return yield* refuse("USAGE", "nobody is here to be asked whether to delete", { remedy: "Add --yes where it is meant." })
    }
    Composition.say(["This deletes, with what was said in them:", ...doomed.map(describe)].join("\n"))
    const typed = yield* KeyboardInput.make(process.stdin, process.stderr).question(`Delete ${doomed.length === 1 ? "it" : `these ${doomed.length}`}? [y/N] `)
    return typed._tag === "Interrupt" ? undefined : typed._tag === "Line" && /^\s*y(es)?\s*$/i.test(typed.text)
  })

/** Removes what the session's harness was given as a directory of its own. */
const removeDirectory = (dataDirectory: string, id: string): Effect.Effect<void, Refusal> =>
  Effect.flatMap(Sessions.newId(id), () => {
    const directory = path.join(dataDirectory, "sessions", id)
    return Effect.try({
      try: () => fs.rmSync(directory, { recursive: true, force: true }),
      catch: (cause) => DataDirectory.unusable(`session ${id} was deleted, and its directory ${directory} is still there`, cause)
    })
  })

const command = (given: Given, ids: ReadonlyArray<string>): Effect.Effect<number, SessionsProgram.Problem, Scope.Scope> =>
  Effect.gen(function*() {
    const directory = yield* Sessions.directoryOf(given)
    const store = yield* Sessions.opened(call(given), ids[0] ?? "")
    const doomed = yield* examine(given, store, ids)
    const held = doomed.find(({ summary }) => summary?.holder !== undefined)
    if (held?.summary?.holder !== undefined) {
      return yield* Sessions.busy(held.id, held.summary.holder, "Nothing was deleted. End what holds the session first.")
    }
    if (!isOn(given, "yes")) {
      const answer = yield* confirm(doomed)
      if (answer !== true) Composition.say("turnpike: nothing was deleted")
      if (answer === undefined) return 130
      if (!answer) return 0
    }
    let untold: Refusal | undefined
    for (const { id } of doomed) {
      yield* store.delete(id)
      yield* removeDirectory(directory, id)
      yield* (isOn(given, "json") ? SessionsProgram.writeJson({ id, deleted: true }) : SessionsProgram.write(`deleted ${Printable.printable(id)}\n`)).pipe(
        // The others go all the same.
        Effect.catchTags({
          ReaderGone: () => Effect.void,
          Refusal: (refusal) =>
            Effect.sync(() => {
              untold = refusal
            })
        })
      )
    }
    if (untold === undefined) return 0
    const all = doomed.map(({ id }) => Printable.printable(id)).join(", ")
    return yield* SessionsProgram.doneAllTheSame(untold, doomed.length === 1 ? `session ${all} was deleted` : `sessions ${all} were deleted`)
  })

export const main = (given: Given, positionals: ReadonlyArray<string>): Promise<number> => SessionsProgram.run(command(given, positionals))
