/** That the list of Codex's methods in the fixtures is the one that the real binary generates. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { makePrivatePlace, programOf, versionOf } from "./support/realCli.ts"

const methodsOf = (file: string): ReadonlyArray<string> =>
  [...new Set([...fs.readFileSync(file, "utf8").matchAll(/"method": ?"([^"]+)"/gu)].map((match) => match[1] ?? ""))].sort()

describe("Codex's types", () => {
  it("name the methods that the fixtures name", () => {
    const place = makePrivatePlace()
    try {
      const out = path.join(place.home, "types")
      execFileSync(programOf("codex"), ["app-server", "generate-ts", "--out", out], { env: { ...place.env, CODEX_HOME: place.config }, stdio: "ignore", timeout: 60_000 })
      const of = (name: string) => methodsOf(path.join(out, `${name}.ts`))
      // The package of the platform bears its name behind the version.
      const version = versionOf("codex").split("-")[0]
      const pinned: unknown = JSON.parse(fs.readFileSync(new URL(`../fixtures/codex/${version}/methods.json`, import.meta.url), "utf8"))
      assert.deepStrictEqual(pinned, {
        version,
        server_notifications: of("ServerNotification"),
        server_requests: of("ServerRequest"),
        client_requests: of("ClientRequest"),
        client_notifications: of("ClientNotification")
      })
    } finally {
      place.remove()
    }
  }, 120_000)
})
