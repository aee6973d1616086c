/** A mount of a test's own, that nobody else sees and that goes with its program: util-linux makes it. */
import { spawnSync } from "node:child_process"

const flags = process.getuid?.() === 0 ? ["--mount"] : ["--mount", "--user", "--map-root-user"]

/** What to put in front of a program, so that it finds something mounted. The shell's `$1` is the directory. */
export const mounted = (script: string, directory: string): ReadonlyArray<string> => [
  "unshare",
  ...flags,
  "sh",
  "-c",
  `${script} && shift && exec "$@"`,
  "sh",
  directory
]

/** Why nothing can be mounted here; `undefined` where it can. */
export const missing = (): string | undefined => {
  const { error, status, stderr } = spawnSync("unshare", [...flags, "true"], { encoding: "utf8" })
  return status === 0 ? undefined : `nothing can be mounted here: ${error?.message ?? stderr}`
}
