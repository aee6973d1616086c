import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "./support/Workspace.ts"

/** What every adapter of an installed program has a file for; what is more in one folder is what is special to its program. */
const roles = ["Conversation", "Failure", "Harness", "Home", "Program", "Tools", "Turn", "Usage", "Wire"]

const adapters = [
  { folder: "harness-claude", prefix: "Claude", own: [] },
  { folder: "harness-codex", prefix: "Codex", own: [] },
  {
    folder: "harness-copilot",
    prefix: "Copilot",
    // A service of the user's own comes in variables, and the text mode is a second way to run a turn.
    own: ["CopilotProvider", "CopilotTurnRunner", "PreemptSlot", "SerialTurnDriver", "TurnArgv", "TurnRunner"]
  }
] as const

const source = (folder: string, name: string) => fs.readFileSync(path.join(root, "packages", folder, "src", `${name}.ts`), "utf8")

/** The names that a file declares at its top, in order. */
const declared = (folder: string, name: string): ReadonlyArray<string> =>
  [...source(folder, name).matchAll(/^(?:export )?(?:const|interface) (\w+)/gm)].map(([, declaration = ""]) => declaration)

describe.each(adapters)("$folder, laid beside the others", ({ folder, own, prefix }) => {
  it("has the same files for the same roles", () => {
    const files = fs.readdirSync(path.join(root, "packages", folder, "src")).filter((name) => name.endsWith(".ts") && name !== "index.ts")
    assert.deepStrictEqual(files.map((name) => name.replace(/\.ts$/, "")).sort(), [...roles.map((role) => `${prefix}${role}`), ...own].sort())
  })

  it("has the same parts in the same order", () => {
    const parts = {
      Harness: ["name", "capabilities", "Options", "planned", "commandOf", "handshake", "refused", "dialect", "make"],
      Home: ["signIn", "traps", "findings"],
      Program: ["tested", "exe", "nativeBehind", "description"],
      Conversation: ["Asked", "State", "initial", "prompt", "interrupt", "frame"]
    }
    for (const [role, names] of Object.entries(parts)) {
      assert.deepStrictEqual(declared(folder, `${prefix}${role}`).filter((name) => names.includes(name)), names, role)
    }
  })
})
