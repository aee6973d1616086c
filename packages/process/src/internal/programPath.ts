/**
 * Finds and checks what is to be executed before anything is started: behind a
 * containment's own programs the system's answer would be an exit code.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ProcessError from "../ProcessError.ts"

type Looked = { readonly found: string } | { readonly why: string; readonly hidden?: true } | undefined

/** Answers the executable, why the file cannot be executed, or `undefined` where there is no file. */
const look = (file: string): Looked => {
  try {
    const stat = fs.statSync(file)
    if (stat.isDirectory()) return { why: "it is a directory" }
    if (!stat.isFile()) return { why: "it is not a regular file" }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : { why: `${code}; check the permissions of its directory`, hidden: true }
  }
  try {
    fs.accessSync(file, fs.constants.X_OK)
  } catch {
    return { why: "it lacks the permission to execute (chmod +x)" }
  }
  return { found: file }
}

/** The interpreter that a script's first line names and that does not exist. */
const missingInterpreter = (file: string): string | undefined => {
  let descriptor: number | undefined
  try {
    descriptor = fs.openSync(file, "r")
    const start = Buffer.alloc(256)
    const length = fs.readSync(descriptor, start, 0, start.length, 0)
    const match = /^#![ \t]*([^\s]+)/.exec(start.toString("utf8", 0, length))
    return match !== null && path.isAbsolute(match[1]!) && !fs.existsSync(match[1]!) ? match[1] : undefined
  } catch {
    // A program may be executable and not readable; then the system decides.
    return undefined
  } finally {
    if (descriptor !== undefined) fs.closeSync(descriptor)
  }
}

/**
 * Answers the absolute path of a program: one with a slash is taken from `cwd`,
 * any other is looked for in the directories of `searchPath`.
 */
export const resolve = (program: string, cwd: string, searchPath: string): Effect.Effect<string, ProcessError.ProcessError> =>
  Effect.suspend(() => {
    const searched = program.includes("/") ? [] : searchPath.split(path.delimiter).filter((directory) => directory !== "")
    const candidates = program.includes("/") ? [path.resolve(cwd, program)] : searched.map((directory) => path.resolve(cwd, directory, program))
    let why: { readonly file: string; readonly why: string } | undefined
    for (const candidate of candidates) {
      const looked = look(candidate)
      // A directory of PATH that may not be entered is passed over, as the system does.
      if (looked === undefined || (searched.length > 0 && "hidden" in looked)) continue
      if ("why" in looked) {
        why ??= { file: candidate, why: looked.why }
        continue
      }
      const interpreter = missingInterpreter(looked.found)
      return interpreter === undefined
        ? Effect.succeed(looked.found)
        : Effect.fail(ProcessError.fromReason(
          new ProcessError.ProgramNotExecutable({
            program: looked.found,
            why: `its first line asks for ${interpreter}, which does not exist; install that or correct the line`
          })
        ))
    }
    return Effect.fail(ProcessError.fromReason(
      why === undefined
        ? new ProcessError.ProgramNotFound({ program, searched })
        : new ProcessError.ProgramNotExecutable({ program: why.file, why: why.why })
    ))
  })

/** Fails unless `cwd` is a directory that can be entered. */
export const checkDirectory = (program: string, cwd: string): Effect.Effect<void, ProcessError.ProcessError> =>
  Effect.suspend(() => {
    const unusable = (why: string) => Effect.fail(ProcessError.fromReason(new ProcessError.DirectoryUnusable({ program, cwd, why })))
    try {
      if (!fs.statSync(cwd).isDirectory()) return unusable("it is not a directory")
      fs.accessSync(cwd, fs.constants.X_OK)
      return Effect.void
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return unusable(code === "ENOENT" ? "there is no such directory" : `${code}`)
    }
  })
