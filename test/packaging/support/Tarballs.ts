/**
 * The packages as they would be published: built, bundled, and packed by the package manager that
 * rewrites `workspace:` versions and applies `publishConfig`.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { packages, root } from "../../architecture/support/Workspace.ts"

export interface Tarball {
  readonly folder: string
  readonly name: string
  readonly file: string
}

export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The tools of the workspace, and among them its Node, before those of the machine. */
export const environment = (extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${path.join(root, "node_modules/.bin")}${path.delimiter}${process.env["PATH"] ?? ""}`,
  NODE_OPTIONS: "",
  ...extra
})

/** The machine's own npm, on the machine's own Node: where it finds the settings that were made for it. */
export const npm = (args: ReadonlyArray<string>, cwd: string, env: NodeJS.ProcessEnv): string =>
  succeed("npm", args, cwd, {
    ...env,
    PATH: (env["PATH"] ?? "").split(path.delimiter).filter((directory) => !directory.endsWith(path.join("node_modules", ".bin"))).join(path.delimiter)
  })

/** Runs a program to its end. */
export const run = (command: string, args: ReadonlyArray<string>, cwd: string, env: NodeJS.ProcessEnv = environment()): Ran => {
  const result = spawnSync(command, args, { cwd, env, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })
  if (result.error !== undefined) throw result.error
  return { status: result.status, stdout: result.stdout, stderr: result.stderr }
}

/** Runs a program that has to succeed, and answers its stdout. */
export const succeed = (command: string, args: ReadonlyArray<string>, cwd: string, env?: NodeJS.ProcessEnv): string => {
  const { status, stderr, stdout } = run(command, args, cwd, env)
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} in ${cwd} ended with exit ${status}\n${stdout}${stderr}`)
  return stdout
}

/** Whether the command exists yet; its bundle is part of its package. */
export const hasCommand = (): boolean => fs.existsSync(path.join(root, "packages/cli/src/bin.ts"))

/** Builds everything and packs every package into a directory. */
export const pack = (directory: string): ReadonlyArray<Tarball> => {
  succeed("tsc", ["-b"], root)
  if (hasCommand()) succeed("tsdown", ["--config", "packages/cli/tsdown.config.ts", "--logLevel", "warn"], root)
  return packages().map(({ directory: packageDirectory, folder, manifest }) => {
    const file = path.join(directory, `${folder}.tgz`)
    succeed("pnpm", ["pack", "--out", file], packageDirectory)
    return { folder, name: manifest.name, file }
  })
}

/** The paths inside a tarball, without their common `package/`. */
export const contents = (tarball: Tarball): ReadonlyArray<string> =>
  succeed("tar", ["-tzf", tarball.file], root).split("\n").filter((line) => line !== "").map((line) => line.replace(/^package\//, "")).sort()

/** One file of a tarball. */
export const readPacked = (tarball: Tarball, file: string): string => succeed("tar", ["-xzOf", tarball.file, `package/${file}`], root)
