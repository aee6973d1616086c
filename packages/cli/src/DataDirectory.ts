/**
 * Where Turnpike keeps what outlives a run: one directory of the user's own.
 *
 * `--data-dir`, else `TURNPIKE_HOME`, else the platform's state directory. It is
 * made with mode 0700 where it does not exist; one that exists keeps its mode.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as InputText from "./InputText.ts"
import * as NewDirectory from "./NewDirectory.ts"
import { refuse, type Refusal } from "./Refusal.ts"

export interface Choice {
  readonly directory: string
  /** What named it, for messages. */
  readonly by: string
}

type Environment = Readonly<Record<string, string | undefined>>

const absolute = (text: string | undefined): string | undefined =>
  text !== undefined && path.isAbsolute(text) ? text : undefined

/** The home that the system knows for the user, where it knows the user. */
const homeOfUser = (): string => {
  try {
    return os.userInfo().homedir
  } catch {
    return os.homedir()
  }
}

/**
 * Names the directory without touching it. A relative `XDG_STATE_HOME` is
 * ignored, as the XDG Base Directory Specification demands, and so is a relative
 * `HOME`: it would put what is to outlive a run wherever the run happens to be.
 */
export const choose = (flag: string | undefined, environment: Environment): Choice => {
  if (flag !== undefined) return { directory: path.resolve(flag), by: "--data-dir" }
  const own = environment["TURNPIKE_HOME"]
  if (own !== undefined && own !== "") return { directory: own, by: "TURNPIKE_HOME" }
  const home = absolute(environment["HOME"]) ?? homeOfUser()
  const by = "the platform's state directory"
  switch (process.platform) {
    case "darwin":
      return { directory: path.join(home, "Library", "Application Support", "turnpike"), by }
    case "win32":
      return { directory: path.join(environment["LOCALAPPDATA"] ?? path.join(home, "AppData", "Local"), "turnpike"), by }
    default:
      return { directory: path.join(absolute(environment["XDG_STATE_HOME"]) ?? path.join(home, ".local", "state"), "turnpike"), by }
  }
}

const reasons: Readonly<Record<string, string>> = {
  EEXIST: "it is not a directory",
  ENOTDIR: "a part of its path is not a directory",
  EACCES: "it may not be written",
  EPERM: "it may not be written",
  EROFS: "its file system is read-only",
  ENOSPC: "its disk is full",
  EDQUOT: "its quota is used up"
}

export const unusable = (what: string, cause: unknown): Refusal => {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return refuse("DATA_DIR_UNUSABLE", `${what}: ${(code === undefined ? undefined : reasons[code]) ?? InputText.reasonOf(cause)}`)
}

/**
 * Why the choice cannot stand; `undefined` where it can. A relative directory in
 * a variable would be another one wherever a command happens to run, so that
 * sessions would be lost.
 */
export const refusal = ({ by, directory }: Choice): Refusal | undefined =>
  path.isAbsolute(directory)
    ? undefined
    : refuse("DATA_DIR_UNUSABLE", `the data directory ${directory} (${by}) cannot be used: it is not an absolute path, and would be another one in every working directory`, {
      remedy: `Make ${by === "TURNPIKE_HOME" ? by : "HOME"} an absolute path, or name the directory with --data-dir.`
    })

/** Makes the directory if need be, and makes sure that it can be written. Fails with `DATA_DIR_UNUSABLE`. */
export const open = (choice: Choice): Effect.Effect<string, Refusal> =>
  Effect.suspend(() => {
    const { by, directory } = choice
    const refused = refusal(choice)
    return refused !== undefined ? Effect.fail(refused) : Effect.try({
      try: () => {
        NewDirectory.make(directory)
        fs.accessSync(directory, fs.constants.W_OK | fs.constants.X_OK)
        return directory
      },
      catch: (cause) => unusable(`the data directory ${directory} (${by}) cannot be used`, cause)
    })
  })
