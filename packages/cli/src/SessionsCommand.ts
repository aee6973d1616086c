/**
 * `turnpike sessions`: leads to the command that was asked for, and loads no other.
 */
import type { Given } from "./CommandLine.ts"

export const main = async (name: string, given: Given, positionals: ReadonlyArray<string>): Promise<number> => {
  switch (name) {
    case "sessions list":
      return (await import("./sessions/ListCommand.ts")).main(given)
    case "sessions show":
      return (await import("./sessions/ShowCommand.ts")).main(given, positionals)
    case "sessions log":
      return (await import("./sessions/LogCommand.ts")).main(given, positionals)
    case "sessions explain":
      return (await import("./sessions/ExplainCommand.ts")).main(given, positionals)
    case "sessions send":
      return (await import("./sessions/SendCommand.ts")).main(given, positionals)
    case "sessions inject":
      return (await import("./sessions/InjectCommand.ts")).main(given, positionals)
    case "sessions fork":
      return (await import("./sessions/ForkCommand.ts")).main(given, positionals)
    case "sessions export":
      return (await import("./sessions/ExportCommand.ts")).main(given, positionals)
    case "sessions import":
      return (await import("./sessions/ImportCommand.ts")).main(given, positionals)
    case "sessions repair":
      return (await import("./sessions/RepairCommand.ts")).main(given, positionals)
    case "sessions delete":
      return (await import("./sessions/DeleteCommand.ts")).main(given, positionals)
    default:
      throw new Error(`the command ${name} has no module`)
  }
}
