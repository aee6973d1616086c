/**
 * The mark by which everything that a supervisor starts can be found again,
 * also after the supervisor itself is dead.
 *
 * It is an environment variable, one for each supervised command, whose value
 * names the owning process: boot, pid namespace, pid and start time. The pid
 * alone would not do, because numbers are used again. Descendants inherit the
 * variable, and with it those of the supervisors above: the names differ.
 */
export const defaultPrefix = "TURNPIKE_OWNER_"

export interface Owner {
  /** The kernel's random id of this boot. */
  readonly bootId: string
  /** The number of the pid namespace in which `pid` counts. */
  readonly namespace: string
  readonly pid: number
  /** Start time as the process table has it. */
  readonly started: number
}

export const format = (owner: Owner): string => `${owner.bootId}.${owner.namespace}.${owner.pid}.${owner.started}`

/** Reads a tag's value; `undefined` when it is none. */
export const parse = (value: string): Owner | undefined => {
  const match = /^([0-9a-f-]{1,64})\.(\d+)\.(\d+)\.(\d+)$/.exec(value)
  return match === null
    ? undefined
    : { bootId: match[1]!, namespace: match[2]!, pid: Number(match[3]), started: Number(match[4]) }
}

/** The owners that an environment names, by the names of their variables. */
export const inEnvironment = (environment: string, prefix: string): ReadonlyMap<string, Owner> => {
  const owners = new Map<string, Owner>()
  if (!environment.includes(prefix)) return owners
  for (const entry of environment.split("\0")) {
    if (!entry.startsWith(prefix)) continue
    const equals = entry.indexOf("=")
    const owner = equals === -1 ? undefined : parse(entry.slice(equals + 1))
    if (owner !== undefined) owners.set(entry.slice(0, equals), owner)
  }
  return owners
}

/**
 * The variable that marks a watchdog, whatever its owner's prefix. It cannot have
 * its owner's tag, by which it finds what it has to kill.
 */
export const watchdogVariable = "TURNPIKE_OWNER_WATCHDOG"

/** Whether an environment shows that a supervisor, of whatever prefix, answers for the process. */
export const isMarked = (environment: string): boolean =>
  environment.split("\0").some((entry) => {
    const equals = entry.indexOf("=")
    return equals !== -1
      && (entry.slice(0, equals) === watchdogVariable || parse(entry.slice(equals + 1)) !== undefined)
  })
