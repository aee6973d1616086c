/**
 * Starts programs that cannot outlive their owner.
 *
 * Every program is contained (see `Containment`), carries its owner's tag in the
 * environment, and belongs to the scope that spawned it. One watchdog process a
 * supervisor kills what is left when this process dies without a word; what even
 * that did not reach is found by its tag and killed when the next supervisor
 * starts. Uses `/proc` on Linux; elsewhere the promise is weaker (`doctor` says
 * how), and on Windows nothing can be started.
 *
 * Runs on the main thread: behind a namespace's parent-death signal stands the
 * thread that spawned, and a Worker's end would kill the program.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import * as path from "node:path"
import type { Child, KillReport } from "./Child.ts"
import * as ChildEnvironment from "./ChildEnvironment.ts"
import * as Command from "./Command.ts"
import * as Containment from "./Containment.ts"
import * as Family from "./internal/family.ts"
import * as LineReader from "./internal/lineReader.ts"
import * as NodeChild from "./internal/nodeChild.ts"
import * as OutputTail from "./internal/outputTail.ts"
import * as ProcessTable from "./internal/processTable.ts"
import * as ProgramPath from "./internal/programPath.ts"
import * as SupervisedChild from "./internal/supervisedChild.ts"
import * as ThisProcess from "./internal/thisProcess.ts"
import * as Watchdog from "./internal/watchdog.ts"
import * as LineSplitter from "./LineSplitter.ts"
import * as Orphans from "./Orphans.ts"
import * as OwnerTag from "./OwnerTag.ts"
import * as ProcessError from "./ProcessError.ts"
import * as ProcessInfo from "./ProcessInfo.ts"

export interface Options {
  /** The strategy of commands that name none; else the default of `Containment`. */
  readonly containment?: Containment.Strategy | undefined
  /** Where tini is, for `pid-namespace`; `false` does without it. Looked for in PATH unless given. */
  readonly tini?: string | false | undefined
  /**
   * What commands inherit, before it is cleaned; this process's environment at the
   * time of the spawn unless given. Its PATH is where the containments' own programs
   * are looked for, too.
   */
  readonly environment?: ChildEnvironment.Variables | undefined
  /** The beginning of the names of the tags' variables. Supervisors with different ones do not see each other's orphans. */
  readonly tagPrefix?: string | undefined
  /** Takes credentials out of the command lines in reports, before they are bounded. */
  readonly redact?: ((text: string) => string) | undefined
  /** Whether leftovers of dead owners are killed when the supervisor starts; yes unless given. */
  readonly reapOrphans?: boolean | undefined
}

export interface Service {
  /**
   * Starts a program; completes when it is being executed in its containment.
   * The end of the scope closes it. Fails, with nothing started, when the command
   * or the machine does not allow it.
   */
  readonly spawn: (command: Command.Command) => Effect.Effect<Child, ProcessError.ProcessError, Scope.Scope>
  /** Which strategies work here, and why others do not; tried out once, unless the machine was too busy to tell. */
  readonly probe: Effect.Effect<ReadonlyArray<Containment.Availability>>
  /** The strategy of commands that name none. */
  readonly containment: Effect.Effect<Containment.Available, ProcessError.ProcessError>
  /** What was left by dead owners when this supervisor started. */
  readonly reaped: KillReport
}

export class Supervisor extends Context.Service<Supervisor, Service>()("@turnpike/process/Supervisor") {}

const nothing: KillReport = { killed: [], survivors: [] }

/** Descendants are looked for this often where no namespace keeps them together; sooner after the start. */
const lookEveryMs = { procfs: 1000, ps: 5000, none: 60_000 }

/** Makes a supervisor. Its scope's end closes what is still running, then ends the watchdog. */
export const make = Effect.fn("Supervisor.make")(function*(options: Options = {}) {
  const table = ProcessTable.ofThisMachine()
  const owner = ThisProcess.owner(table)
  const tagPrefix = options.tagPrefix ?? OwnerTag.defaultPrefix
  const redact = options.redact ?? ((text: string) => text)
  const inherited = () => options.environment ?? process.env
  const [probedOnce, forget] = yield* Effect.cachedInvalidateWithTTL(
    Effect.suspend(() => Containment.probe({ tini: options.tini, searchPath: inherited()["PATH"] ?? "" })),
    "Infinity"
  )
  // A weaker containment for the supervisor's whole life is no answer to a machine that was busy once.
  const probed = Effect.tap(probedOnce, (all) => all.some((one) => one.mayPass === true) ? forget : Effect.void)

  const open = new Set<Child>()
  let isOver = false
  const watchdogEnvironment: Record<string, string> = { [OwnerTag.watchdogVariable]: "1" }
  for (const [name, value] of Object.entries(process.env)) {
    // The tags of supervisors above let those find our watchdog, too.
    if (value !== undefined && (name === "PATH" || OwnerTag.parse(value) !== undefined)) watchdogEnvironment[name] = value
  }
  const watchdog = Watchdog.make(OwnerTag.format(owner), watchdogEnvironment)
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isOver = true
      return Effect.forEach([...open], (child) => child.close, { concurrency: "unbounded", discard: true })
    }).pipe(Effect.andThen(Effect.sync(watchdog.done)))
  )

  const reaped = options.reapOrphans === false ? nothing : yield* Orphans.reap({ tagPrefix, redact })

  const choose = Effect.fnUntraced(function*(asked: Containment.Strategy | undefined) {
    if (process.platform === "win32") {
      return yield* ProcessError.fromReason(new ProcessError.PlatformUnsupported({ platform: "Windows", what: "starting contained programs" }))
    }
    const all = yield* probed
    const found = asked === undefined
      ? NodeChild.onMainThread() ? Containment.defaultOf(all) : all.find((one) => one.strategy === "group")
      : all.find((one) => one.strategy === asked)
    if (found === undefined) {
      const group = all.find((one) => one.strategy === "group")!
      return yield* unavailable(group.availability as Containment.Unavailable)
    }
    if (found.prepared === undefined) return yield* unavailable(found.availability)
    if (found.prepared.own > 0 && !NodeChild.onMainThread()) {
      return yield* unavailable({
        strategy: found.strategy,
        available: false,
        why: "this is a worker thread, whose end would kill the program",
        remedy: "spawn from the main thread, or use group"
      })
    }
    return found.prepared
  })

  const startWatchdog = Effect.try({
    try: watchdog.ensure,
    catch: (error) =>
      ProcessError.fromReason(
        new ProcessError.SpawnRefused({ program: "sh", code: (error as NodeJS.ErrnoException).code ?? "UNKNOWN", detail: "the watchdog could not be started" })
      )
  })

  const spawnUnscoped = Effect.fnUntraced(function*(command: Command.Command) {
    const cwd = path.resolve(command.cwd)
    const args = command.args ?? []
    const limits = yield* validate(command)
    // The watchdog is gone: nobody would kill what this process leaves behind.
    if (isOver) return yield* supervisorIsOver(command.program)
    const prepared = yield* choose(command.containment ?? options.containment)
    const environment = ChildEnvironment.make(inherited(), command.env)
    yield* ProgramPath.checkDirectory(command.program, cwd)
    const program = yield* ProgramPath.resolve(command.program, cwd, environment["PATH"] ?? "")
    const { strategy } = prepared.availability
    yield* startWatchdog

    const tagName = `${tagPrefix}${randomBytes(8).toString("hex")}`
    const env = { ...environment, [tagName]: OwnerTag.format(owner) }
    const namespaced = prepared.own > 0
    const node = yield* NodeChild.start(prepared.wrap(program, args), { cwd, env, fourth: namespaced }).pipe(
      Effect.mapError((fault) => refusal(fault, program, args, env))
    )
    const root: Family.Root = {
      pid: node.pid,
      started: table.row(node.pid)?.started ?? 0,
      tagName,
      pipes: new Set(table.files(node.pid, 3).filter((file) => /^(pipe|socket):/.test(file))),
      own: prepared.own
    }
    watchdog.add(root)
    const untagged = new Map<string, ProcessTable.Row>()
    const family = Family.make(table, root, {
      redact,
      seen: (row) => {
        // What has its tag is found by it; the watchdog is told of the others.
        if (namespaced || row.pid === root.pid || table.environment(row.pid).includes(`${tagName}=`)) return
        untagged.set(ProcessInfo.identity(row), row)
        watchdog.add(row)
      }
    })
    const stopLooking = namespaced ? () => {} : lookNowAndThen(family, table, untagged, watchdog)
    const errorSource = node.fourth ?? node.stderr
    const supervised = SupervisedChild.make({
      node,
      program,
      strategy,
      namespaced,
      family,
      table,
      reader: LineReader.make(node.stdout, limits.lines),
      errorTail: OutputTail.collect(errorSource, limits.stderrTailBytes),
      diagnostics: namespaced ? OutputTail.collect(node.stderr, 4096) : undefined,
      closeLadder: command.closeLadder ?? Command.defaultCloseLadder,
      onClosed: (living) => {
        stopLooking()
        open.delete(supervised.child)
        // What could not be killed stays the watchdog's.
        if (living.length > 0) return
        watchdog.remove(root)
        for (const row of untagged.values()) watchdog.remove(row)
      }
    })
    open.add(supervised.child)
    return { supervised, program, strategy }
  })

  const giveBack = (supervised: SupervisedChild.SupervisedChild) => Effect.ensuring(supervised.child.close, supervised.release)

  const spawn = Effect.fn("Supervisor.spawn")(function*(command: Command.Command) {
    const { program, strategy, supervised } = yield* Effect.acquireRelease(
      spawnUnscoped(command),
      ({ supervised }) => giveBack(supervised)
    )
    // What began while the supervisor was ending is not among those that it has closed.
    const start = isOver
      ? Effect.fail(supervisorIsOver(program))
      : Effect.mapError(supervised.started, (detail) =>
        ProcessError.fromReason(new ProcessError.ContainmentFailed({ strategy, program, detail })))
    // A scope may go on for long after a failed start.
    yield* Effect.tapError(start, () => giveBack(supervised))
    return supervised.child
  })

  return Supervisor.of({
    spawn,
    probe: Effect.map(probed, (all) => all.map((one) => one.availability)),
    containment: Effect.map(choose(options.containment), (prepared) => prepared.availability),
    reaped
  })
})

/** A supervisor for as long as the layer lives. */
export const layer = (options: Options = {}): Layer.Layer<Supervisor> => Layer.effect(Supervisor, make(options))

const supervisorIsOver = (program: string) =>
  ProcessError.fromReason(new ProcessError.SpawnRefused({ program, code: "ECANCELED", detail: "the supervisor's scope has ended" }))

const unavailable = ({ remedy, strategy, why }: Containment.Unavailable) =>
  ProcessError.fromReason(new ProcessError.ContainmentUnavailable({ strategy, why, remedy }))

/** Looks at the descendants, so that those are known whose parents die later. Answers how to stop. */
const lookNowAndThen = (
  family: Family.Family,
  table: ProcessTable.ProcessTable,
  untagged: Map<string, ProcessTable.Row>,
  watchdog: Watchdog.Watchdog
): () => void => {
  const most = lookEveryMs[table.source]
  let timer: NodeJS.Timeout
  const look = (delayMs: number) => {
    timer = setTimeout(() => {
      tidy()
      look(Math.min(most, delayMs * 2))
    }, delayMs)
    timer.unref()
  }
  const tidy = () => {
    let living: ReadonlySet<string>
    try {
      living = new Set(family.living().map(({ row }) => ProcessInfo.identity(row)))
    } catch {
      // The system let nobody look. Nothing is known to be gone, and the next look may be luckier.
      return
    }
    for (const [id, row] of untagged) {
      if (living.has(id)) continue
      untagged.delete(id)
      watchdog.remove(row)
    }
  }
  look(most / 20)
  return () => clearTimeout(timer)
}

const validate = (command: Command.Command) => {
  const invalid = (field: string, why: string) =>
    Effect.fail(ProcessError.fromReason(new ProcessError.InvalidCommand({ program: command.program, field, why })))
  if (command.program === "") return invalid("program", "is empty")
  const texts = [
    ["program", command.program],
    ["cwd", command.cwd],
    ...(command.args ?? []).map((argument, index) => [`args[${index}]`, argument] as const),
    ...Object.entries(command.env ?? {}).map(([name, value]) => [`env.${name}`, value ?? ""] as const)
  ] as const
  for (const name of Object.keys(command.env ?? {})) {
    if (name === "" || /[=\0]|\p{Surrogate}/u.test(name)) return invalid(`env[${JSON.stringify(name)}]`, "is not the name of a variable")
  }
  for (const [field, text] of texts) {
    if (text.includes("\0")) return invalid(field, "holds a NUL character")
    // It would arrive as another character.
    if (/\p{Surrogate}/u.test(text)) return invalid(field, "holds half a surrogate pair, which is no text that a program can be given")
  }
  const maxLineBytes = command.maxLineBytes ?? LineSplitter.defaults.maxLineBytes
  if (!Number.isInteger(maxLineBytes) || maxLineBytes < 1 || maxLineBytes > Command.largestLineBytes) {
    return invalid("maxLineBytes", `is ${maxLineBytes}; it must be an integer from 1 to ${Command.largestLineBytes}`)
  }
  const stderrTailBytes = command.stderrTailBytes ?? Command.defaultStderrTailBytes
  if (!Number.isInteger(stderrTailBytes) || stderrTailBytes < 0) {
    return invalid("stderrTailBytes", `is ${stderrTailBytes}; it must be an integer from 0`)
  }
  return Effect.succeed({
    lines: { maxLineBytes, headBytes: Math.min(maxLineBytes, LineSplitter.defaults.headBytes) },
    stderrTailBytes
  })
}

/** Gives the system's refusal its name. */
const refusal = (
  fault: NodeChild.SpawnFault,
  program: string,
  args: ReadonlyArray<string>,
  env: Record<string, string>
): ProcessError.ProcessError => {
  switch (fault.code) {
    case "E2BIG": {
      const bytes = (texts: ReadonlyArray<string>) => texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)
      return ProcessError.fromReason(
        new ProcessError.ArgumentsTooLong({
          program,
          argumentBytes: bytes([program, ...args]),
          environmentBytes: bytes(Object.entries(env).map(([name, value]) => `${name}=${value}`))
        })
      )
    }
    case "ENOENT":
      return ProcessError.fromReason(new ProcessError.ProgramNotFound({ program, searched: [] }))
    case "EACCES":
      return ProcessError.fromReason(new ProcessError.ProgramNotExecutable({ program, why: "the system denies it" }))
    default:
      return ProcessError.fromReason(new ProcessError.SpawnRefused({ program, code: fault.code, detail: fault.detail }))
  }
}
