import { assert, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as ModelScenario from "../src/ModelScenario.ts"

it("the README's table has every scenario with its parameters, and no other", () => {
  const readme = fs.readFileSync(new URL("../README.md", import.meta.url), "utf8")
  const table = readme.split("| scenario |")[1]?.split("\n\n")[0] ?? ""
  const rows = table.split("\n").slice(2).map((line) => line.split("|").map((cell) => cell.trim()))
  const named = (cell = "") => [...cell.matchAll(/`([a-z_]+)`/g)].map((match) => match[1] ?? "")
  const documented = rows.flatMap(([, names, parameters]): Array<readonly [string, unknown]> =>
    named(names).map((type) => [type, ModelScenario.catalogue.find((entry) => entry.type === type)?.parameters.filter(({ name }) => !named(parameters).includes(name))])
  )
  assert.deepStrictEqual(documented.map(([type]) => type), [...new Set(documented.map(([type]) => type))])
  assert.deepStrictEqual(
    documented.toSorted(([a], [b]) => a.localeCompare(b)),
    ModelScenario.catalogue.map(({ type }): readonly [string, unknown] => [type, []]).toSorted(([a], [b]) => a.localeCompare(b))
  )
})
