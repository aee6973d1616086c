import { expectations, heavyExpectations } from "./support/expectations.ts"
import { isRoot, stages } from "./support/stages.ts"
import { suite } from "./support/suite.ts"

for (const user of isRoot ? ["root", "an ordinary user"] as const : ["an ordinary user"] as const) {
  for (const runtime of ["Node", "Deno"] as const) {
    for (const stage of stages(user, runtime)) suite(stage, expectations(stage.strategy), 2)
  }
}

// Floods use a whole core each, and their memory is measured: one at a time.
for (const stage of stages(isRoot ? "root" : "an ordinary user")) suite(stage, heavyExpectations, 1)
