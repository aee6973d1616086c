/**
 * A small shell process that outlives its supervisor by the moment it takes to
 * kill what the supervisor leaves behind.
 *
 * It waits on a pipe that only the supervisor holds. When the pipe ends without
 * the word `done`, the supervisor is gone, however it went: the watchdog then
 * kills, again and again until five rounds find nothing, every process that has the
 * supervisor's tag in its environment, descends from a process it was told of,
 * or shares a session or process group with one. It needs sh, grep and /proc;
 * without a /proc that shows its own numbers it kills the groups that it was
 * told of.
 */
import { type ChildProcess, spawn } from "node:child_process"
import type { Writable } from "node:stream"

/** $1 is the owner's tag value. Roots are kept as " pid:started ". */
const script = `
trap '' INT TERM HUP PIPE
roots=' '
while read -r word pid started; do
  case $word in
    +) roots="$roots$pid:$started " ;;
    -) case $roots in *" $pid:$started "*) roots="\${roots%%" $pid:$started "*} \${roots#*" $pid:$started "}" ;; esac ;;
    done) exit 0 ;;
  esac
done
self=
read -r self rest 2>/dev/null </proc/self/stat
if [ "$self" != $$ ]; then
  for root in $roots; do kill -s KILL -- "-\${root%:*}" 2>/dev/null; done
  exit 0
fi
rounds=0
empty=0
while [ $rounds -lt 60 ]; do
  rounds=$((rounds + 1))
  known=' '
  tagged=' '
  for file in $(grep -lsF "=$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    tagged="$tagged\${pid%/environ} "
  done
  grown=1
  while [ $grown = 1 ]; do
    grown=0
    for file in /proc/[0-9]*/stat; do
      stat=
      read -r stat 2>/dev/null <"$file" || continue
      pid=\${stat%% *}
      set -- "$1" \${stat##*) }
      case $2 in Z|X) continue ;; esac
      case $known in *" $pid "*) continue ;; esac
      [ "$pid" = $$ ] && continue
      case $tagged in *" $pid "*) known="$known$pid "; grown=1; continue ;; esac
      case $roots in *" $pid:\${21} "*) known="$known$pid "; grown=1; continue ;; esac
      case $known in *" $3 "*|*" $4 "*|*" $5 "*) known="$known$pid "; grown=1; continue ;; esac
      case $roots in *" $4:"*|*" $5:"*) known="$known$pid "; grown=1 ;; esac
    done
  done
  # A process that is just being replaced by another program shows no tag: only several empty rounds are the end.
  if [ "$known" = ' ' ]; then
    empty=$((empty + 1))
    [ $empty -ge 5 ] && exit 0
    continue
  fi
  empty=0
  for pid in $known; do kill -s KILL "$pid" 2>/dev/null; done
done
`

export interface Watchdog {
  /** Starts the watchdog unless it runs. Throws what the system says when it cannot be started. */
  readonly ensure: () => void
  /** Tells of a process whose descendants are to die with the supervisor. */
  readonly add: (process: { readonly pid: number; readonly started: number }) => void
  readonly remove: (process: { readonly pid: number; readonly started: number }) => void
  /** Ends the watchdog: all is closed. */
  readonly done: () => void
  readonly pid: () => number | undefined
}

/** `environment` is what the watchdog runs with; it must not hold the tag of this owner. */
export const make = (tagValue: string, environment: Record<string, string>): Watchdog => {
  const roots = new Set<string>()
  let child: ChildProcess | undefined
  let finished = false
  let failures = 0

  const begin = () => {
    const started = spawn("sh", ["-c", script, "turnpike-watchdog", tagValue], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      cwd: "/",
      env: environment
    })
    child = started
    // A watchdog that somebody killed is replaced; one that cannot stay alive is not tried for ever.
    const lost = () => {
      if (child !== started) return
      child = undefined
      while (child === undefined && !finished && roots.size > 0 && failures < 5) {
        failures++
        try {
          begin()
        } catch {
          // Nobody waits for this one; where the system stays like that, the next spawn says so.
          child = undefined
        }
      }
    }
    started.on("exit", lost)
    started.on("error", lost)
    // Where no more files can be open it has no pipe either, and the error event comes.
    started.stdin?.on("error", () => {})
    // It must not keep the supervisor's event loop alive.
    started.unref()
    ;(started.stdin as Writable & { unref?: () => void } | null | undefined)?.unref?.()
    for (const line of roots) write(`+ ${line}\n`)
  }
  const write = (line: string) => {
    if (child?.stdin?.writable === true) child.stdin.write(line)
  }

  return {
    ensure: () => {
      if (child === undefined && !finished) begin()
    },
    add: ({ pid, started }) => {
      const line = `${pid} ${started}`
      if (roots.has(line)) return
      roots.add(line)
      write(`+ ${line}\n`)
    },
    remove: ({ pid, started }) => {
      const line = `${pid} ${started}`
      if (roots.delete(line)) write(`- ${line}\n`)
    },
    done: () => {
      finished = true
      write("done\n")
      child?.stdin?.end()
    },
    pid: () => child?.pid
  }
}
