import { assert, describe, it } from "@effect/vitest"
import { parse } from "../src/CommandLine.ts"
import { commands } from "../src/CommandTable.ts"
import { runnable, wordOf } from "../src/Flag.ts"
import * as Help from "../src/Help.ts"

/** The words of an example that the shell would give to turnpike. */
const words = (line: string): ReadonlyArray<string> =>
  [...(line.split("turnpike ")[1] ?? "").replace(/ [|<>].*$/, "").matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map((match) => match[1] ?? match[2] ?? "")

describe("the help", () => {
  it("names every command and the way to more", () => {
    const text = Help.root("1.2.3")
    for (const { name, summary } of commands) assert.include(text, `${name} `.padEnd(10) + summary)
    assert.match(text, /^turnpike 1\.2\.3: /)
    for (const word of ["TURNPIKE_HOME", "NO_COLOR", "130", "143", "turnpike COMMAND --help"]) assert.include(text, word)
  })

  it.each(runnable(commands).map((command) => [command.name, command] as const))("of %s names every flag and fits a terminal", (_name, command) => {
    const text = Help.of(command)
    for (const flag of command.flags) assert.include(text, `--${flag.name}`)
    for (const positional of command.positionals) assert.include(text, positional.name)
    const tooLong = text.split("\n").filter((line) => line.length > 100 && !line.trimStart().startsWith("turnpike") && !line.includes("| turnpike"))
    assert.deepStrictEqual(tooLong, [])
  })

  it("of a command before others names each of them, and how to go on", () => {
    const groups = commands.filter((command) => command.commands !== undefined)
    assert.deepStrictEqual(groups.map(({ name }) => name), ["sessions"])
    for (const group of groups) {
      const text = Help.of(group)
      for (const command of group.commands ?? []) {
        assert.include(text, `  ${wordOf(command)} `)
        assert.include(text, command.summary)
        assert.isTrue(command.name.startsWith(`${group.name} `))
      }
      assert.include(text, `turnpike ${group.name} COMMAND --help`)
      assert.deepStrictEqual(text.split("\n").filter((line) => line.length > 100), [])
    }
  })

  it.each([...commands, ...runnable(commands)].flatMap((command) => command.examples.map(([line]) => [line] as const)))("shows an example that is taken: %s", (line) => {
    assert.strictEqual(parse(words(line), commands)._tag, "Run")
  })

  it("breaks lines between words", () => {
    assert.deepStrictEqual(Help.wrap("aa bb cccccccc d", 5), ["aa bb", "cccccccc", "d"])
  })
})
