/**
 * What is done about processes that became another user's, run by an ordinary user.
 * They need `as-root` beside the stage's directory: a set-uid setpriv, which does
 * what sudo does, without a password.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as ProcessTable from "../../src/internal/processTable.ts"
import * as ThisProcess from "../../src/internal/thisProcess.ts"
import * as Orphans from "../../src/Orphans.ts"
import * as OwnerTag from "../../src/OwnerTag.ts"
import { fast, quietTail, type Scenario, type Stage, started } from "./scenarios.ts"
import * as Specimens from "./specimens.ts"

const foreignAndOwn = `"$SPECIMEN_DIRECTORY/../as-root" --reuid=0 --regid=0 --clear-groups ${quietTail("foreign")}
  setsid ${quietTail("own")} while :; do sleep 0.05; done`

const orphansPrefix = "TESTFOREIGN_"

export const foreignScenarios = {
  "a descendant that became another user": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["foreign", "own"])
    const child = yield* stage.shell(foreignAndOwn, fast)
    yield* started(stage, ["foreign", "own"])
    const report = yield* child.close
    return { killed: Specimens.names(stage.directory, report.killed), survivors: Specimens.names(stage.directory, report.survivors) }
  }),

  "an orphan's child that became another user": Effect.fnUntraced(function*(stage: Stage) {
    Specimens.touch(stage.directory, ["foreign", "own"])
    // Nobody has this process's number and another start time: an owner that is certainly dead.
    const dead = { ...ThisProcess.owner(ProcessTable.ofThisMachine()), started: 1 }
    spawn("sh", ["-c", foreignAndOwn], {
      env: { ...process.env, [Specimens.variable]: stage.directory, [`${orphansPrefix}1`]: OwnerTag.format(dead) },
      stdio: "ignore",
      detached: true
    })
    yield* started(stage, ["foreign", "own"])
    const report = yield* Orphans.reap({ tagPrefix: orphansPrefix })
    return { killed: Specimens.names(stage.directory, report.killed), survivors: Specimens.names(stage.directory, report.survivors) }
  })
} satisfies Record<string, Scenario>
