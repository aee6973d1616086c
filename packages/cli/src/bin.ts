/**
 * The turnpike command.
 *
 * Loads as little as the command line asks for: the version needs nothing, a
 * wrong flag needs the tables alone, and a command its own modules.
 */
import * as fs from "node:fs"
import * as Version from "./Version.ts"

/** The oldest Node that has everything that is used here. */
const leastNode = [22, 19] as const

const isTooOld = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major < leastNode[0] || (major === leastNode[0] && minor < leastNode[1])
}

/** Writes all of it, also where a pipe takes it in parts. */
const print = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => error ? reject(error) : resolve())
  })

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  const LastWords = () => import("./LastWords.ts")
  if (process.versions["deno"] === undefined && isTooOld(process.versions.node)) {
    const { format } = await LastWords()
    fs.writeSync(2, format({
      code: "NODE_TOO_OLD",
      message: `Node ${process.versions.node} (${process.execPath}) is too old: ${leastNode.join(".")} or later is needed`,
      remedy: "Install a newer Node, and run turnpike with it."
    }))
    return 1
  }
  if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
    await print(`${Version.read()}\n`)
    return 0
  }
  const [{ parse }, { commands }] = await Promise.all([import("./CommandLine.ts"), import("./CommandTable.ts")])
  const parsed = parse(args, commands)
  switch (parsed._tag) {
    case "Version":
      await print(`${Version.read()}\n`)
      return 0
    case "Help": {
      const Help = await import("./Help.ts")
      await print(parsed.command === undefined ? Help.root(Version.read()) : Help.of(parsed.command))
      return 0
    }
    case "Fault": {
      const { format } = await LastWords()
      process.stderr.write(format({ code: "USAGE", ...parsed.fault }))
      return 2
    }
    case "Run": {
      const { given, positionals } = parsed
      switch (parsed.command.name) {
        case "run":
          return (await import("./RunCommand.ts")).main(given, positionals)
        case "chat":
          return (await import("./ChatCommand.ts")).main(given)
        case "doctor":
          return (await import("./DoctorCommand.ts")).main(given, positionals)
        case "schema":
          return (await import("./SchemaCommand.ts")).main(positionals)
        case "validate":
          return (await import("./ValidateCommand.ts")).main(given, positionals)
        default:
          if (parsed.command.name.startsWith("sessions ")) return (await import("./SessionsCommand.ts")).main(parsed.command.name, given, positionals)
          throw new Error(`the command ${parsed.command.name} has no module`)
      }
    }
  }
}

/** Leaves when standard error has taken what was said, at most a second later. */
const leave = (code: number): void => {
  process.exitCode = code
  const timer = setTimeout(() => process.exit(code), 1000)
  process.stderr.write("", () => {
    clearTimeout(timer)
    process.exit(code)
  })
}

process.stderr.on("error", () => {
  // Nobody reads what is said to people; there is nobody to tell that.
})
process.stdout.on("error", () => {
  // Whoever writes to it learns it there.
})

/** A text that nobody takes is no bug; anything else that comes here is one. */
const tell = (thrown: unknown): void => {
  const code = (thrown as NodeJS.ErrnoException | undefined)?.code
  if (code === "EPIPE") return
  const isWrite = thrown instanceof Error && "syscall" in thrown && thrown.syscall === "write"
  process.stderr.write(
    isWrite
      ? `turnpike: standard output cannot be written: ${thrown.message}\n  code: OUTPUT_CLOSED\n  what to do: Write to something that takes it.\n`
      : `turnpike: a bug ended the program: ${thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown)}\n` +
        "  code: INTERNAL\n  what to do: This is a bug in Turnpike. Please report it with the message.\n"
  )
}

main(process.argv.slice(2)).then(leave, (thrown: unknown) => {
  tell(thrown)
  leave(1)
})
