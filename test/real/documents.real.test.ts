/** The commands in documents that need somebody's own agent, run with the real one and a scripted model. */
import { assert, layer } from "@effect/vitest"
import { ModelServer } from "@turnpike/testkit"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { type CodeBlock, codeBlocks } from "../docs/support/Markdown.ts"
import { claudeEnv, makePrivatePlace, programOf, run } from "./support/realCli.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

const blocks: ReadonlyArray<CodeBlock> = execFileSync(
  "git",
  ["-c", `safe.directory=${path.resolve(root)}`, "ls-files", "-z", "*.md"],
  { cwd: root, encoding: "utf8" }
).split("\0")
  .filter((file) => file !== "" && !/(^|\/)CHANGELOG\.md$|^\.changeset\//.test(file) && fs.existsSync(path.join(root, file)))
  .flatMap((file) => codeBlocks(file, fs.readFileSync(path.join(root, file), "utf8")))
  .filter(({ language, marks }) => language === "sh" && marks.includes("real"))

const place = Effect.acquireRelease(Effect.sync(makePrivatePlace), (place) => Effect.sync(place.remove))

layer(ModelServer.layer(), { excludeTestServices: true })("commands for a real agent in documents", (it) => {
  it.effect("were found", () => Effect.sync(() => assert.isAtLeast(blocks.length, 1)))

  for (const block of blocks) {
    it.effect(`${block.document}:${block.line} ends as it says`, () =>
      Effect.gen(function*() {
        const server = yield* ModelServer.ModelServer
        const here = yield* place
        const bin = path.join(here.home, "bin")
        fs.mkdirSync(bin)
        // A reader has the agent on the PATH, and types in the clone.
        fs.symlinkSync(programOf("claude"), path.join(bin, "claude"))
        const turnpike = path.join(root, "packages/cli/bin/turnpike.mjs")
        fs.writeFileSync(path.join(bin, "npx"), `#!/bin/sh\nshift\nexec "${process.execPath}" "${turnpike}" "$@"\n`, { mode: 0o755 })
        const ended = yield* Effect.promise((signal) =>
          run("sh", ["-euc", block.code], {
            cwd: here.work,
            env: {
              ...claudeEnv(here, {
                baseUrl: server.baseUrl({ type: "text" }, "documents"),
                proxyUrl: server.url,
                apiKey: "sk-scripted-key-of-the-real-test"
              }),
              PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
              TURNPIKE_HOME: path.join(here.home, "turnpike")
            },
            stdin: "",
            signal
          })
        )
        assert.strictEqual(ended.code, 0, `${block.code}\n${ended.stdout}${ended.stderr}`)
      }))
  }
})
