/** A PostgreSQL server of the tests' own: in a temporary directory, on the loopback, ended by its pid. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"

const installed = "/usr/lib/postgresql"

/** Where Debian puts the programs of the newest version that is installed. */
const programs = (): string => {
  const versions = fs.existsSync(installed) ? fs.readdirSync(installed).filter((name) => fs.existsSync(path.join(installed, name, "bin/initdb"))) : []
  const [newest] = versions.sort((one, other) => Number(other) - Number(one))
  if (newest === undefined) throw new Error("PostgreSQL is not installed: node scripts/install-postgres.mjs does it")
  return path.join(installed, newest, "bin")
}

/** PostgreSQL does not run as root: as the user of Debian's package then. */
const asServer = (): { readonly uid?: number; readonly gid?: number } => {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag: string) => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout.trim())
  return { uid: idOf("-u"), gid: idOf("-g") }
}

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = net.createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

export interface Server {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly database: string
  readonly pid: number
  /** Ends the server without a goodbye, and begins it again on the same data. */
  readonly crash: () => Promise<void>
}

const run = (program: string, args: ReadonlyArray<string>, ids: ReturnType<typeof asServer>) => {
  const ran = spawnSync(program, args, { ...ids, encoding: "utf8", cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8" } })
  if (ran.status !== 0) throw new Error(`${program} ended with ${ran.signal ?? ran.status}: ${ran.stdout}${ran.stderr}`)
}

const begin = async (bin: string, data: string, directory: string, port: number, ids: ReturnType<typeof asServer>): Promise<ChildProcess> => {
  const log = fs.openSync(path.join(directory, "log"), "a")
  const child = spawn(path.join(bin, "postgres"), ["-D", data, "-k", directory, "-h", "127.0.0.1", "-p", `${port}`, "-c", "max_connections=60"], {
    ...ids,
    cwd: "/",
    stdio: ["ignore", log, log],
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8" }
  })
  fs.closeSync(log)
  const deadline = Date.now() + 30_000
  while (spawnSync(path.join(bin, "pg_isready"), ["-h", "127.0.0.1", "-p", `${port}`, "-q"]).status !== 0) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`PostgreSQL did not begin: ${fs.readFileSync(path.join(directory, "log"), "utf8")}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return child
}

const ended = (child: ChildProcess, signal: NodeJS.Signals) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once("exit", () => resolve())
    child.kill(signal)
  })

const start = async (): Promise<{ readonly server: Server; readonly stop: () => Promise<void> }> => {
  const bin = programs()
  const ids = asServer()
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "turnpike-postgres-"))
  if (ids.uid !== undefined && ids.gid !== undefined) fs.chownSync(directory, ids.uid, ids.gid)
  const data = path.join(directory, "data")
  run(path.join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"], ids)
  const port = await freePort()
  let child = await begin(bin, data, directory, port, ids)
  return {
    server: {
      host: "127.0.0.1",
      port,
      username: "postgres",
      database: "postgres",
      get pid() {
        return child.pid ?? 0
      },
      crash: async () => {
        // Not SIGKILL: the server's own children would hold its memory for a while. SIGQUIT is its word for a crash.
        await ended(child, "SIGQUIT")
        child = await begin(bin, data, directory, port, ids)
      }
    },
    stop: async () => {
      await ended(child, "SIGINT")
      fs.rmSync(directory, { recursive: true, force: true })
    }
  }
}

/** A server for as long as the scope is open. */
export const server: Effect.Effect<Server, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(Effect.promise(start), ({ stop }) => Effect.promise(stop)),
  (started) => started.server
)
