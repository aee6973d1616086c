import { expectations } from "./support/expectations.ts"
import { isRoot, stages, withForeignProc } from "./support/stages.ts"
import { suite } from "./support/suite.ts"

// Every containment for whoever runs the tests; the slow suite adds the other user and the other runtime.
for (const stage of stages(isRoot ? "root" : "an ordinary user")) suite(stage, expectations(stage.strategy), 4)

const { "a ladder": ladder, "both outputs": both, exits, "input that is not read": unread } = expectations("group")
suite(withForeignProc, { exits, "both outputs": both, "a ladder": ladder, "input that is not read": unread }, 4)
