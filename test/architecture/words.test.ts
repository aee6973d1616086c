import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "./support/Workspace.ts"

/** Files that git has, or would have: committed ones and new ones that are not ignored. */
const committed = () => {
  // A clone that belongs to another user is still this repository.
  const listed = spawnSync("git", ["-c", `safe.directory=${root}`, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024
  })
  assert.strictEqual(listed.status, 0, listed.stderr)
  return listed.stdout.split("\0").filter((file) => file !== "" && fs.existsSync(path.join(root, file)))
}

/** Directories of one machine; a placeholder such as a home of "me" says nothing about a machine. */
const machinePaths = [
  ["/", "root/"],
  ["/", "work/"],
  ["/", "home/(?!(?:me|you|user|someone|ada)\\b)\\w"],
  ["/", "Users/(?!(?:me|you|user|someone|ada)\\b)\\w"]
].map((parts) => new RegExp(`(?<![\\w.$}/-])${parts.join("")}`))

const publicHosts = ["registry.npmjs.org", "github.com", "codeload.github.com"]

const pathsIn = (file: string, content: string): ReadonlyArray<string> =>
  content.split("\n").flatMap((line, index) =>
    machinePaths.some((pattern) => pattern.test(line)) ? [`${file}:${index + 1}: ${line.trim().slice(0, 160)}`] : []
  )

const foreignHostsIn = (file: string, content: string): ReadonlyArray<string> =>
  [...content.matchAll(/(?:resolved|tarball|registry)"?\s*[:=]\s*"?(?:git\+)?[a-z]+:\/\/(?:[^/\s"@]*@)?([^/\s":]+)/gi)]
    .map((match) => match[1] ?? "")
    .filter((host) => !publicHosts.includes(host))
    .map((host) => `${file}: ${host}`)

const isText = (content: Buffer) => !content.subarray(0, 8_000).includes(0)
const isLock = (file: string) => /(^|\/)(pnpm-lock\.yaml|package-lock\.json|\.npmrc|deno\.lock)$/.test(file)

describe("committed files", () => {
  const files = committed()
  const texts = files
    .map((file) => ({ file, content: fs.lstatSync(path.join(root, file)).isFile() ? fs.readFileSync(path.join(root, file)) : Buffer.alloc(0) }))
    .filter(({ content }) => isText(content))
    .map(({ content, file }) => ({ file, content: content.toString("utf8") }))

  it("were found", () => {
    assert.includeMembers(files, ["package.json", "pnpm-lock.yaml", "test/architecture/words.test.ts", "packages/kernel/src/index.ts"])
  })

  it("name no directory of one machine", () => {
    assert.deepStrictEqual(texts.filter(({ file }) => !isLock(file)).flatMap(({ content, file }) => pathsIn(file, content)), [])
  })

  it("lock packages of public registries only", () => {
    assert.deepStrictEqual(texts.filter(({ file }) => isLock(file)).flatMap(({ content, file }) => foreignHostsIn(file, content)), [])
  })

  it("are not huge", () => {
    const huge = files.filter((file) => fs.lstatSync(path.join(root, file)).size > 2 * 1024 * 1024)
    assert.deepStrictEqual(huge, [])
  })
})

describe("the scan of words", () => {
  it("sees a path of a machine, and lets placeholders, variables and longer names pass", () => {
    const root = ["/", "root/x"].join("")
    const home = ["/", "home/ci/x"].join("")
    assert.deepStrictEqual(pathsIn("a.md", [root, `cd ${home}`, "/home/me/x", "$HOME/work/x", "a/work/x", "https://h/work/x"].join("\n")), [
      `a.md:1: ${root}`,
      `a.md:2: cd ${home}`
    ])
  })

  it("sees a registry that is not public", () => {
    assert.deepStrictEqual(foreignHostsIn("package-lock.json", `"resolved": "http://127.0.0.1:4873/a.tgz", "resolved": "https://registry.npmjs.org/a.tgz"`), [
      "package-lock.json: 127.0.0.1"
    ])
    assert.deepStrictEqual(foreignHostsIn("pnpm-lock.yaml", "resolution: {tarball: https://mirror.example/a.tgz}"), ["pnpm-lock.yaml: mirror.example"])
  })
})
