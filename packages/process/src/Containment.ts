/**
 * How a command's descendants are held, so that all of them can be ended.
 *
 * A strategy is a promise with a price; each is tried out once, and the default
 * is the strongest that works here and does not change what the program may do.
 */
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import * as ProcessTable from "./internal/processTable.ts"
import * as ProgramPath from "./internal/programPath.ts"

/**
 * - `pid-namespace`: the command lives in a pid namespace of its own, which the
 *   kernel empties when its first process dies, and which dies with its owner.
 *   Nothing can leave it. Inside, pids begin at 1 again and `/proc` shows the
 *   namespace alone; mounts made inside stay inside. As an ordinary user it needs
 *   a user namespace too: in it sudo and other set-uid programs gain nothing, and
 *   files of other owners look like those of nobody.
 * - `bwrap`: the same through bubblewrap, which also sets `no_new_privs`: set-uid
 *   programs (sudo) gain nothing, for root's children too.
 * - `group`: the command is the leader of a session and process group of its own,
 *   its descendants carry a tag in their environment, and a watchdog kills them
 *   when the owner dies. A process that clears its environment, leaves the
 *   session, gives up the shared pipes and loses its parent before it was seen is
 *   not held; it is listed as a suspect when that can be seen afterwards.
 */
export type Strategy = "pid-namespace" | "bwrap" | "group"

/** The strongest first. */
export const strategies: ReadonlyArray<Strategy> = ["pid-namespace", "bwrap", "group"]

/** Whether a strategy works here; what `doctor` prints. */
export type Availability = Available | Unavailable

export interface Available {
  readonly strategy: Strategy
  readonly available: true
  /** What is certain when the command is closed, as a sentence. */
  readonly promise: string
  /** What the program cannot do that it could do uncontained, as a sentence; "" for nothing. */
  readonly price: string
}

export interface Unavailable {
  readonly strategy: Strategy
  readonly available: false
  readonly why: string
  readonly remedy: string
}

/** A strategy that was tried out, ready to be put before a command. */
export interface Prepared {
  readonly availability: Available
  /** Where there is a namespace: how many processes of ours run in it before the program. */
  readonly own: 0 | 1 | 2
  /** Puts the strategy's own programs before an absolute program and its arguments. */
  readonly wrap: (program: string, args: ReadonlyArray<string>) => readonly [string, ...Array<string>]
}

export type Probed = {
  readonly strategy: Strategy
  /** Present where the trial itself could not be made, for want of time, memory or descriptors: ask again. */
  readonly mayPass?: true
} & (
  | { readonly prepared: Prepared; readonly availability: Available }
  | { readonly prepared: undefined; readonly availability: Unavailable }
)

export interface ProbeOptions {
  /** Where tini is; `false` does without it, and so does a machine that lacks it: then sh is the namespace's first process. */
  readonly tini?: string | false | undefined
  /** Where programs are looked for. */
  readonly searchPath: string
}

/**
 * The program in the namespace that starts the command. It says `started` on
 * descriptor 3 when the containment stands, `exited <status>` when the command's
 * own first process has ended, and then, if anything else is alive in the
 * namespace, holds it until descriptor 3 ends: so what is left can be listed
 * before it is killed, and what a command declares as background work may finish.
 *
 * The program's standard error is descriptor 4, so that what the containment's
 * own programs say (unshare: "sigprocmask unblock failed") is not mixed into it.
 * `$0` is the number of our own processes in the namespace. The subshell keeps
 * sh's "Killed" out of the program's standard error, and setsid makes the program
 * the leader of a group that can be signalled as a whole.
 */
const holdScript = `trap : INT TERM HUP
printf 'started\\n' >&3
exec 2>/dev/null
(exec "$@" 2>&4 3>&- 4>&-)
status=$?
set -- /proc/[0-9]*
printf 'exited %s\\n' $status >&3
[ $# -le $0 ] && exit $status
exec </dev/null >/dev/null 4>&-
read -r word <&3
exit $status`

/**
 * Without a namespace the program takes its shell's place once its owner says `go`
 * on descriptor 3: then the owner knows its start time and its pipes, and the
 * watchdog knows of it, before it can start anything. Descriptor 3 ends with that.
 */
const gateScript = `read -r word <&3 && [ "$word" = go ] && exec "$@" 3<&-
exit 125`

const isRoot = (): boolean => process.geteuid?.() === 0

/** Runs a program to its end; answers its exit code and the end of what it wrote to standard error. */
const runOnce = (argv: readonly [string, ...Array<string>]): Effect.Effect<{ readonly code: number | string; readonly stderr: string }> =>
  Effect.callback((resume) => {
    execFile(argv[0], argv.slice(1), { timeout: 10_000, killSignal: "SIGKILL" }, (error, _stdout, stderr) => {
      const code = error === null ? 0 : error.code ?? error.signal ?? "unknown"
      resume(Effect.succeed({ code, stderr: stderr.trim().slice(-300) }))
    })
  })

const tools = Effect.fnUntraced(function*(names: ReadonlyArray<string>, searchPath: string) {
  const paths: Record<string, string> = {}
  const missing: Array<string> = []
  for (const name of names) {
    const path = yield* Effect.option(ProgramPath.resolve(name, "/", searchPath))
    if (path._tag === "Some") paths[name] = path.value
    else missing.push(name)
  }
  return { paths, missing }
})

const unavailable = (strategy: Strategy, why: string, remedy: string): Probed => ({
  strategy,
  prepared: undefined,
  availability: { strategy, available: false, why, remedy }
})

const available = (availability: Available, own: Prepared["own"], wrap: Prepared["wrap"]): Probed => ({
  strategy: availability.strategy,
  prepared: { availability, own, wrap },
  availability
})

/** Tries a namespace: the strategy's programs must start `sh` and pass its exit code on. */
const probeNamespace = Effect.fnUntraced(function*(
  availability: Available,
  wrapper: readonly [string, ...Array<string>],
  own: 1 | 2,
  paths: Record<string, string>,
  remedy: string
) {
  const { code, stderr } = yield* runOnce([...wrapper, paths["sh"]!, "-c", "exit 42"])
  if (code !== 42) {
    const refused = unavailable(availability.strategy, stderr === "" ? `its programs ended with ${code} instead of 42` : stderr, remedy)
    // What has no exit code did not start, or did not end in time.
    return typeof code === "number" ? refused : { ...refused, mayPass: true as const }
  }
  return available(availability, own, (program, args) => [
    ...wrapper, paths["sh"]!, "-c", holdScript, String(own), paths["setsid"]!, program, ...args
  ])
})

const nothingSurvives = "No descendant is alive once the command is closed or its owner is dead, whatever it did."

/** Why this machine cannot hold a command in a namespace, whatever is installed. */
const whyNoNamespace = (): readonly [why: string, remedy: string] | undefined => {
  if (process.platform !== "linux") return [`${process.platform} has no pid namespaces`, "use group, whose promise is weaker"]
  if (ProcessTable.ofThisMachine().source !== "procfs") {
    return ["/proc does not show this process's own pid namespace", "mount /proc for it (unshare --mount-proc)"]
  }
  return undefined
}

const probePidNamespace = Effect.fnUntraced(function*(options: ProbeOptions) {
  const strategy = "pid-namespace"
  const impossible = whyNoNamespace()
  if (impossible !== undefined) return unavailable(strategy, ...impossible)
  const { missing, paths } = yield* tools(["setpriv", "unshare", "setsid", "sh"], options.searchPath)
  if (missing.length > 0) {
    return unavailable(strategy, `${missing.join(" and ")} not found in PATH`, "install util-linux")
  }
  const user = isRoot() ? [] : ["--user", "--map-current-user"]
  const tryWith = (tini: string | undefined) => probeNamespace(
    {
      strategy,
      available: true,
      promise: nothingSurvives,
      price: isRoot()
        ? "Pids begin at 1 inside, and mounts made inside are not seen outside."
        : "Pids begin at 1 inside; sudo and other set-uid programs gain nothing; files of other owners look like those of nobody."
    },
    [
      paths["setpriv"]!, "--pdeathsig", "KILL",
      paths["unshare"]!, ...user, "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
      ...(tini === undefined ? [] : [tini, "--"])
    ],
    tini === undefined ? 1 : 2,
    paths,
    isRoot()
      ? "allow namespaces (CAP_SYS_ADMIN; in a container: --privileged or a seccomp profile that permits unshare), or use group"
      : "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or use group"
  )
  if (typeof options.tini === "string") return yield* tryWith(options.tini)
  const installed = options.tini === false ? undefined : (yield* tools(["tini"], options.searchPath)).paths["tini"]
  if (installed !== undefined) {
    const withTini = yield* tryWith(installed)
    if (withTini.prepared !== undefined) return withTini
  }
  return yield* tryWith(undefined)
})

const probeBwrap = Effect.fnUntraced(function*(options: ProbeOptions) {
  const strategy = "bwrap"
  const impossible = whyNoNamespace()
  if (impossible !== undefined) return unavailable(strategy, ...impossible)
  const { missing, paths } = yield* tools(["bwrap", "setsid", "sh"], options.searchPath)
  if (missing.length > 0) {
    return unavailable(strategy, `${missing.join(" and ")} not found in PATH`, "install bubblewrap and util-linux")
  }
  return yield* probeNamespace(
    {
      strategy,
      available: true,
      promise: nothingSurvives,
      price: "Pids begin at 1 inside; sudo and other set-uid programs gain nothing; mounts made inside are not seen outside."
    },
    [paths["bwrap"]!, "--dev-bind", "/", "/", "--unshare-pid", "--die-with-parent", "--proc", "/proc", "--"],
    2,
    paths,
    "allow unprivileged user namespaces for bwrap, or use group"
  )
})

const groupPromises = {
  procfs: "Every descendant that keeps its environment, its session, a pipe of the command or a living parent is killed; others are listed where they can be seen.",
  ps: "Descendants in the command's process group, or seen while their parent lived, are killed; without /proc others cannot be found.",
  none: "The command's process group is killed; without a usable /proc or ps nothing else can be found."
}

const probeGroup = Effect.fnUntraced(function*(options: ProbeOptions) {
  const strategy = "group"
  if (process.platform === "win32") {
    return unavailable(strategy, "Windows has no process groups", "run Turnpike in WSL")
  }
  const { missing, paths } = yield* tools(["sh", "grep"], options.searchPath)
  if (missing.length > 0) {
    return unavailable(strategy, `${missing.join(" and ")} not found in PATH, which the watchdog needs`, "install them")
  }
  return available(
    {
      strategy,
      available: true,
      promise: groupPromises[ProcessTable.ofThisMachine().source],
      price: ""
    },
    0,
    (program, args) => [paths["sh"]!, "-c", gateScript, "sh", program, ...args]
  )
})

/** Tries all strategies out, the strongest first; some 20 ms. */
export const probe = (options: ProbeOptions): Effect.Effect<ReadonlyArray<Probed>> =>
  Effect.all([probePidNamespace(options), probeBwrap(options), probeGroup(options)], { concurrency: "unbounded" })

/**
 * The strategy that is used unless one is asked for: a pid namespace for root,
 * whose children it does not limit, else `group`, because every namespace of an
 * ordinary user takes sudo and the view of other owners away.
 */
export const defaultOf = (probed: ReadonlyArray<Probed>): Probed | undefined => {
  const usable = (strategy: Strategy) => probed.find((one) => one.strategy === strategy && one.availability.available)
  return (isRoot() ? usable("pid-namespace") : undefined) ?? usable("group")
}
