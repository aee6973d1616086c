/** Joins one started process, its family and its streams into a `Child`. */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import { constants } from "node:os"
import * as Child from "../Child.ts"
import type { Strategy } from "../Containment.ts"
import * as ProcessError from "../ProcessError.ts"
import * as ProcessInfo from "../ProcessInfo.ts"
import * as Family from "./family.ts"
import * as LineReader from "./lineReader.ts"
import * as NodeChild from "./nodeChild.ts"
import type * as OutputTail from "./outputTail.ts"
import type { ProcessTable } from "./processTable.ts"
import * as WallClock from "./wallClock.ts"

export interface Parts {
  readonly node: NodeChild.NodeChild
  readonly program: string
  readonly strategy: Strategy
  readonly namespaced: boolean
  readonly family: Family.Family
  readonly table: ProcessTable
  readonly reader: LineReader.LineReader
  readonly errorTail: OutputTail.Tail
  /** What the containment's own programs said. */
  readonly diagnostics: OutputTail.Tail | undefined
  readonly closeLadder: Child.Ladder
  /** Run once, when nothing is alive any more or the bound is reached. */
  readonly onClosed: (living: ReadonlyArray<Family.Member>) => void
}

export interface SupervisedChild {
  readonly child: Child.Child
  /** Completes when the program is about to be executed in its containment; fails with what the containment said. */
  readonly started: Effect.Effect<void, string>
  /** Gives the file descriptors back. */
  readonly release: Effect.Effect<void>
}

const startBoundMs = 10_000
const killBoundMs = 5_000
const defaultGraceMs = 1_000
const killBornBoundMs = 2_000
/** How long a process that cannot be judged yet is waited for. */
const uncertainBoundMs = 1_000
/**
 * How often, at least, a held namespace is looked at. Our own processes in it hold its
 * output: they let it go before its silence says that a descendant still does.
 */
const heldLookMs = LineReader.silenceMs / 2
/** How long a process without a command line may take to end by itself, or to become another program. */
const dyingBoundMs = 100

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]))

/** Reads a shell's status, in which 128 + n stands for two things. */
export const exitOfStatus = (status: number): Child.ProcessExit => ({
  code: status,
  signal: status > 128 ? signalNames.get(status - 128) ?? null : null
})

export const make = (parts: Parts): SupervisedChild => {
  const { errorTail, family, namespaced, node, program, reader, table } = parts
  const started = Deferred.makeUnsafe<void, string>()
  const exit = Deferred.makeUnsafe<Child.ProcessExit>()
  const rootGone = Deferred.makeUnsafe<void>()
  const pendingWrites = new Set<(why: string) => void>()
  let closing = false
  let inputClosed: string | undefined
  let outputTaken = false

  const programEnded = (how: Child.ProcessExit) => {
    if (!Deferred.doneUnsafe(exit, Exit.succeed(how))) return
    reader.programEnded()
    closeInput(how.code !== null ? `it exited with ${how.code}` : `it was ended by ${how.signal}`)
    node.stdin.destroy()
  }

  const closeInput = (why: string) => {
    inputClosed ??= why
    for (const fail of [...pendingWrites]) fail(inputClosed)
  }

  node.stdin.on("error", (error) => {
    closeInput((error as NodeJS.ErrnoException).code === "EPIPE" ? "it closed its input" : error.message)
  })

  const onControlLine = (line: string) => {
    if (line === "started") Deferred.doneUnsafe(started, Exit.void)
    else if (line.startsWith("exited ")) {
      programEnded(exitOfStatus(Number(line.slice(7))))
      letGoWhenEmpty(10)
    }
  }

  /** The namespace is held for what the program left in it; once that has ended by itself, nothing is to be held. */
  const letGoWhenEmpty = (delayMs: number) => {
    const timer = setTimeout(() => {
      if (closing || Deferred.isDoneUnsafe(rootGone)) return
      if (isEmpty()) node.control.end()
      else letGoWhenEmpty(Math.min(heldLookMs, delayMs * 2))
    }, delayMs)
    timer.unref()
  }

  const isEmpty = (): boolean => {
    try {
      return others().length === 0
    } catch {
      // The system let nobody look; the next look may be luckier, and `close` says so where it is not.
      return false
    }
  }

  const onRootExit = (code: number | null, signal: NodeJS.Signals | null) => {
    Deferred.doneUnsafe(rootGone, Exit.void)
    if (!namespaced) return programEnded({ code, signal })
    const conclude = () => {
      Deferred.doneUnsafe(started, Exit.fail(diagnosis()))
      programEnded(code === null ? { code, signal } : exitOfStatus(code))
    }
    // What was said on the control descriptor says it better, and may be read after this event.
    if (node.control.closed) return conclude()
    const timer = setTimeout(conclude, 1000)
    node.control.once("close", () => {
      clearTimeout(timer)
      conclude()
    })
  }

  const diagnosis = (): string => {
    const said = parts.diagnostics === undefined ? "" : new TextDecoder().decode(parts.diagnostics.bytes()).trim()
    return said === "" ? "its programs ended without a word" : said
  }

  node.process.on("exit", onRootExit)
  if (node.process.exitCode !== null || node.process.signalCode !== null) {
    onRootExit(node.process.exitCode, node.process.signalCode)
  }
  let rest = ""
  node.control.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString("latin1")).split("\n")
    rest = lines.pop()!
    lines.forEach(onControlLine)
  })
  // Its end is the end of the containment, or the program's beginning without one; the rest the exit tells.
  node.control.on("error", () => {})
  if (!namespaced) {
    const begun = () => Deferred.doneUnsafe(started, Exit.void)
    node.control.once("end", begun)
    node.control.once("close", begun)
    node.control.write("go\n")
  }

  const fail = (reason: ProcessError.Reason) => Effect.fail(ProcessError.fromReason(reason))
  const inputIsClosed = (why: string) => fail(new ProcessError.InputClosed({ program, pid: node.pid, why }))

  const write: Child.Input["write"] = (content) =>
    Effect.callback((resume) => {
      if (inputClosed !== undefined) {
        resume(inputIsClosed(inputClosed))
        return
      }
      const give = (why: string) => {
        pendingWrites.delete(give)
        resume(inputIsClosed(why))
      }
      pendingWrites.add(give)
      node.stdin.write(content, (error) => {
        if (!pendingWrites.delete(give)) return
        if (error === null || error === undefined) resume(Effect.void)
        else resume(inputIsClosed(inputClosed ?? error.message))
      })
      return Effect.sync(() => {
        pendingWrites.delete(give)
      })
    })

  const stdin: Child.Input = {
    write,
    writeLine: (text) => write(`${text}\n`),
    end: Effect.sync(() => {
      if (inputClosed === undefined) {
        inputClosed = "its input was ended"
        node.stdin.end()
      }
    })
  }

  /** The output as one of its two forms, to the first who reads it. */
  const output = <A>(pull: Pull.Pull<NonEmptyReadonlyArray<A>, string>): Stream.Stream<A, ProcessError.ProcessError> =>
    Stream.fromPull(Effect.suspend(() => {
      if (outputTaken) return fail(new ProcessError.OutputTaken({ program, pid: node.pid }))
      outputTaken = true
      return Effect.succeed(Effect.mapError(pull, (error) =>
        Cause.isDone(error)
          ? error
          : ProcessError.fromReason(new ProcessError.OutputFailed({ program, pid: node.pid, detail: error }))))
    }))

  const stderr = Effect.sync((): Child.ErrorTail => {
    const bytes = errorTail.bytes()
    const totalBytes = errorTail.totalBytes()
    let begin = 0
    // A cut may fall into a character: at most three of its bytes are left.
    if (totalBytes > bytes.length) while (begin < 3 && (bytes[begin]! & 0xc0) === 0x80) begin++
    return { bytes, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(begin)), totalBytes }
  })

  const hasExited = () => Deferred.isDoneUnsafe(exit)

  /**
   * In a namespace the program appears a moment after the containment stands: first
   * as a copy of our shell, which would swallow a signal, and once it leads a session
   * as what takes signals as a program does.
   */
  const awaitLeader = Effect.gen(function*() {
    const deadline = WallClock.now() + 1000
    while (true) {
      const leader = hasExited() ? undefined : family.leader()
      const isProgram = leader !== undefined && leader.session === leader.pid
      if (isProgram || hasExited() || WallClock.now() > deadline) return leader
      yield* WallClock.sleep(5)
    }
  })

  const signal: Child.Child["signal"] = (name) =>
    Effect.map(awaitLeader, (leader) => {
      if (leader === undefined) return false
      const target = leader.group === leader.pid ? -leader.pid : leader.pid
      return NodeChild.kill(target, name) === "sent"
    })

  const climb = Effect.fnUntraced(function*(ladder: Child.Ladder, beforeKill: () => void) {
    if (hasExited()) return { endedBy: null, exit: yield* Deferred.await(exit) }
    for (const rung of [...ladder, { signal: "SIGKILL" as const, waitMs: killBoundMs }]) {
      if (rung.signal === "SIGKILL") beforeKill()
      yield* signal(rung.signal)
      const ended = yield* WallClock.within(Deferred.await(exit), rung.waitMs)
      if (Option.isSome(ended)) return { endedBy: rung.signal, exit: ended.value }
    }
    return { endedBy: "SIGKILL", exit: undefined } satisfies Child.Termination
  })

  const terminate: Child.Child["terminate"] = (ladder = Child.defaultLadder) => climb(ladder, () => {})

  const others = (): ReadonlyArray<Family.Member> => {
    const leader = family.leader()
    return family.living().filter(({ row }) => leader === undefined || row.pid !== leader.pid)
  }

  /**
   * Waits a moment for those that have no memory any more, or none yet: one that is
   * just ending is not to be listed as killed, and one that is being replaced by
   * another program is to be listed by its name.
   */
  const settle = Effect.fnUntraced(function*(choose: () => ReadonlyArray<Family.Member>) {
    const deadline = WallClock.now() + dyingBoundMs
    while (choose().some(({ row }) => table.command(row.pid).startsWith("[")) && WallClock.now() < deadline) yield* WallClock.sleep(2)
  })

  /**
   * Kills what `choose` answers until it answers nothing but what cannot be
   * killed. Answers who was killed, and who is left.
   */
  const killUntilGone = Effect.fnUntraced(function*(
    choose: () => ReadonlyArray<Family.Member>,
    kill: (members: ReadonlyArray<Family.Member>) => ReadonlyArray<NodeChild.KillOutcome>,
    boundMs: number
  ) {
    yield* settle(choose)
    const begun = WallClock.now()
    const deadline = begun + boundMs
    const killed = new Map<string, ProcessInfo.ProcessInfo>()
    for (let pauseMs = 2;; pauseMs = Math.min(50, pauseMs * 2)) {
      const members = choose()
      if (members.length === 0 && (!family.isUncertain() || WallClock.now() > begun + uncertainBoundMs)) return { killed, left: members }
      // Described once, at first: a dying process has no command line any more.
      const fresh = members.filter(({ row }) => !killed.has(ProcessInfo.identity(row)))
      for (const info of family.describe(fresh)) killed.set(ProcessInfo.identity(info), info)
      const outcomes = kill(members)
      if ((members.length > 0 && outcomes.every((outcome) => outcome === "refused")) || WallClock.now() > deadline) {
        return { killed, left: members }
      }
      yield* WallClock.sleep(pauseMs)
    }
  })

  const report = (outcome: { readonly killed: Map<string, ProcessInfo.ProcessInfo>; readonly left: ReadonlyArray<Family.Member> }): Child.KillReport => {
    const survivors = family.describe(outcome.left)
    for (const survivor of survivors) outcome.killed.delete(ProcessInfo.identity(survivor))
    return { killed: [...outcome.killed.values()], survivors }
  }

  const killEach = (name: NodeJS.Signals) => (members: ReadonlyArray<Family.Member>) =>
    members.map(({ row }) => Family.signalRow(table, row, name))

  const killBornSince: Child.Child["killBornSince"] = Effect.fnUntraced(function*(mark, options = {}) {
    const choose = () => {
      const born = others().filter(({ row }) => !mark.alive.has(ProcessInfo.identity(row)))
      if (options.spare === undefined) return born
      const spared = new Set(family.describe(born).filter(options.spare).map(ProcessInfo.identity))
      return born.filter(({ row }) => !spared.has(ProcessInfo.identity(row)))
    }
    const asked = new Map<string, ProcessInfo.ProcessInfo>()
    yield* settle(choose)
    const deadline = WallClock.now() + (options.graceMs ?? defaultGraceMs)
    while (WallClock.now() < deadline) {
      const members = choose()
      if (members.length === 0 && !family.isUncertain()) break
      const fresh = members.filter(({ row }) => !asked.has(ProcessInfo.identity(row)))
      for (const info of family.describe(fresh)) asked.set(ProcessInfo.identity(info), info)
      killEach("SIGTERM")(fresh)
      yield* WallClock.sleep(10)
    }
    const outcome = yield* killUntilGone(choose, killEach("SIGKILL"), killBornBoundMs)
    return report({ killed: new Map([...outcome.killed, ...asked]), left: outcome.left })
  })

  /** One death of the namespace's first process ends all in it. */
  const killNamespace = (members: ReadonlyArray<Family.Member>): ReadonlyArray<NodeChild.KillOutcome> => {
    const init = family.namespaceInit()
    if (init !== undefined) return [Family.signalRow(table, init, "SIGKILL")]
    return killEach("SIGKILL")(members)
  }

  /** Those that two looks show. */
  const suspects = Effect.gen(function*() {
    const first = family.suspects()
    if (first.length === 0) return first
    yield* WallClock.sleep(20)
    const second = new Set(family.suspects().map(({ row }) => ProcessInfo.identity(row)))
    return first.filter(({ row }) => second.has(ProcessInfo.identity(row)))
  })

  const closed = Deferred.makeUnsafe<Child.CloseReport>()

  const closeOnce = Effect.gen(function*() {
    // KILL goes to the program's whole group: who is in it is lost from view afterwards.
    const killedWithProgram = new Map<string, ProcessInfo.ProcessInfo>()
    if (!hasExited()) {
      yield* climb(parts.closeLadder, () => {
        for (const info of family.describe(others())) {
          if (info.insideGroup) killedWithProgram.set(ProcessInfo.identity(info), info)
        }
      })
    }
    const outcome = yield* killUntilGone(
      hasExited() ? others : family.living,
      namespaced ? killNamespace : killEach("SIGKILL"),
      killBoundMs
    )
    // Where nothing can be listed, the group is all that can be reached.
    if (table.source === "none") NodeChild.kill(-node.pid, "SIGKILL")
    if (namespaced) {
      // Lets the holder of an empty namespace go.
      node.control.end()
      if (Option.isNone(yield* WallClock.within(Deferred.await(rootGone), 2_000))) {
        NodeChild.kill(node.pid, "SIGKILL")
        yield* WallClock.within(Deferred.await(rootGone), 2_000)
      }
    }
    const ended = yield* WallClock.within(Deferred.await(exit), 1_000)
    const left = outcome.left.length === 0 ? [] : family.living()
    const answer: Child.CloseReport = {
      ...report({ killed: new Map([...killedWithProgram, ...outcome.killed]), left }),
      exit: Option.getOrUndefined(ended),
      suspects: family.describe(yield* suspects),
      outputHeld: reader.ending() === "held"
    }
    parts.onClosed(left)
    return answer
  })

  const close = Effect.suspend(() => {
    if (closing) return Deferred.await(closed)
    closing = true
    return Effect.onExit(closeOnce, (result) =>
      Effect.sync(() => {
        // Nobody could look for the descendants: what can be reached blindly dies, the rest stays the watchdog's.
        if (Exit.isFailure(result) && !Deferred.isDoneUnsafe(rootGone)) NodeChild.kill(-node.pid, "SIGKILL")
        Deferred.doneUnsafe(closed, result)
      }))
  }).pipe(Effect.uninterruptible)

  return {
    child: {
      pid: node.pid,
      strategy: parts.strategy,
      program,
      stdin,
      lines: output(reader.pull),
      bytes: output(reader.pullBytes),
      stderr,
      exit: Deferred.await(exit),
      leader: Effect.sync(() => {
        const row = hasExited() ? undefined : family.leader()
        return row === undefined ? undefined : family.describe([{ row, foundBy: "parent" }])[0]
      }),
      signal,
      terminate,
      descendants: Effect.sync(() => family.describe(others())),
      mark: Effect.sync(() => ({ alive: new Set(family.living().map(({ row }) => ProcessInfo.identity(row))) })),
      killBornSince,
      close
    },
    started: Effect.flatMap(
      WallClock.within(Deferred.await(started), startBoundMs),
      (inTime) => Option.isSome(inTime) ? Effect.void : Effect.fail(`it did not stand after ${startBoundMs} ms; ${diagnosis()}`)
    ),
    release: Effect.sync(() => {
      closeInput("it was closed")
      reader.destroy()
      for (const stream of [node.stdin, node.stderr, node.control, node.fourth]) stream?.destroy()
    })
  }
}
