import { assert, describe, it } from "@effect/vitest"
import { current, files } from "../../scripts/schemas.ts"

describe("schemas", () => {
  it("holds exactly the files that the contract generates; `npm run schemas` writes them", () => {
    assert.deepStrictEqual([...current().keys()].sort(), [...files().keys()].sort())
  })

  for (const [name, text] of files()) {
    it(`${name} is what the contract says; \`npm run schemas\` writes it`, () => {
      assert.strictEqual(current().get(name), text)
    })
  }
})
