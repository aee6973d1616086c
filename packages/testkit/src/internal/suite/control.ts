/** Cases about control: tools and permissions, hard cancel, what a turn leaves behind. */
import { type Permission, Prompt, ToolAllowlist } from "@turnpike/kernel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as assert from "node:assert/strict"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Situation from "../../Situation.ts"
import * as Bench from "./bench.ts"
import type { Case } from "./case.ts"

const answering = (decision: "allow" | "deny"): Permission.Decider => ({
  name: "suite",
  decide: () => Effect.succeed({ decision, reason: "the suite says so" })
})
const never: Permission.Decider = { name: "suite", decide: () => Effect.never }

const hasRun = (bench: Bench.Bench): boolean => fs.existsSync(path.join(bench.work, "ran"))

/** The case's processes that are no part of the program itself. */
const left = (bench: Bench.Bench) => () => bench.processes().filter((command) => /^(?:\S*\/)?sleep 98\d$/u.test(command))

export const cases: ReadonlyArray<Case> = [
  {
    name: "a tool that is denied does not run, and the turn tells so",
    needs: ["asks"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.permission_requests === "unsupported") return
        const session = yield* bench.open("asks", { permission: answering("deny") })
        const { end, events } = yield* Bench.turn(session, Situation.promptOf("asks"))
        const requests = events.flatMap((event) => (event.type === "permission/request" ? [event.data] : []))
        assert.deepEqual(requests.map(({ tool_name }) => tool_name), [bench.tools.execute])
        const decisions = events.flatMap((event) => (event.type === "permission/decision" ? [event.data] : []))
        assert.deepEqual(decisions, [{ request_id: requests[0]?.request_id, decision: "deny", by: "suite", reason: "the suite says so" }])
        const results = events.flatMap((event) => (event.type === "tool/result" ? [[event.data.denied, event.data.is_error]] : []))
        assert.deepEqual(results, [[true, true]])
        assert.deepEqual(end.denials.map(({ tool_name }) => tool_name), [bench.tools.execute])
        assert.equal(end.stop_reason, "completed")
        assert.equal(hasRun(bench), false)
      })
  },
  {
    name: "a tool that is allowed runs",
    needs: ["asks"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.permission_requests === "unsupported") return
        const session = yield* bench.open("asks", { permission: answering("allow") })
        const { end, events } = yield* Bench.turn(session, Situation.promptOf("asks"))
        const decisions = events.flatMap((event) => (event.type === "permission/decision" ? [[event.data.decision, event.data.by]] : []))
        assert.deepEqual(decisions, [["allow", "suite"]])
        assert.deepEqual(end.denials, [])
        assert.equal(end.worked, true)
        assert.equal(hasRun(bench), true)
      })
  },
  {
    name: "an interrupt answers the open permission requests, and the tool does not run",
    needs: ["asks"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.permission_requests === "unsupported") return
        const session = yield* bench.open("asks", { permission: never })
        const watched = yield* Bench.watch(session, Situation.promptOf("asks"), (event) => event.type === "permission/request")
        yield* session.interrupt
        const end = yield* Bench.ended(watched)
        assert.equal(end.stop_reason, "aborted")
        const decisions = watched.events.flatMap((event) => (event.type === "permission/decision" ? [event.data.decision] : []))
        assert.deepEqual(decisions, ["cancelled"])
        assert.equal(hasRun(bench), false)
        const { end: after } = yield* Bench.turn(session, "after")
        assert.equal(after.stop_reason, "completed")
      })
  },
  {
    name: "a tool that runs unasked although the allow-list does not hold it ends the turn",
    needs: ["oversteps"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.tool_allow_list !== "enforced") return
        const session = yield* bench.open("oversteps")
        const { error } = yield* Bench.failingTurn(session, Situation.promptOf("oversteps"))
        assert.equal(error.failure.code, "POLICY_VIOLATION")
        yield* session.close
        const allowed = yield* bench.open("oversteps", { sessionId: "suite-allowed", tools: ToolAllowlist.dangerousAll })
        const { end } = yield* Bench.turn(allowed, Situation.promptOf("oversteps"))
        assert.deepEqual([end.stop_reason, end.worked], ["completed", true])
      })
  },
  {
    name: "tools in force that the allow-list does not hold are told",
    needs: ["more_tools"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.tool_allow_list === "unsupported") return
        const session = yield* bench.open("more_tools")
        const { events } = yield* Bench.turn(session, "hello")
        assert.ok(Bench.notices(events).includes("tools_differ"), JSON.stringify(Bench.notices(events)))
      })
  },
  {
    name: "a hard cancel leaves nothing of the turn running, whatever it ignores, and the session goes on",
    needs: ["stuck"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("stuck")
        const watched = yield* Bench.watch(session, Situation.promptOf("stuck"), Bench.isText)
        yield* session.interrupt
        yield* Fiber.interrupt(watched.fiber)
        yield* Bench.nothingLeft(bench)
        const { output } = yield* Bench.turn(session, "after")
        assert.equal(Bench.prompts(output.text).at(-1), "after")
      })
  },
  {
    name: "a program that does not read its input cannot hold up a hard cancel",
    needs: ["deaf"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("deaf")
        const { fiber } = yield* Bench.start(session, "x".repeat(2_000_000))
        assert.equal((yield* Effect.timeoutOption(Fiber.await(fiber), "500 millis"))._tag, "None")
        yield* session.interrupt
        yield* Fiber.interrupt(fiber)
        assert.equal(Exit.isFailure(yield* Fiber.await(fiber)), true)
        yield* Bench.nothingLeft(bench)
      })
  },
  {
    name: "processes that a turn leaves behind are gone after it, and are told",
    needs: ["leaves_processes"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("leaves_processes")
        const { end, events } = yield* Bench.turn(session, Situation.promptOf("leaves_processes"))
        assert.equal(end.stop_reason, "completed")
        yield* Bench.eventually("what the turn left behind", left(bench), (found) => found.length === 0, 10_000)
        const { end: after } = yield* Bench.turn(session, "after")
        assert.equal(after.stop_reason, "completed")
        const report = yield* session.close
        assert.ok(Bench.notices(events).includes("killed_leftovers") || report.killed.length > 0, "they are told")
        assert.deepEqual(report.survivors, [])
        yield* Bench.nothingLeft(bench)
      })
  },
  {
    name: "a message for the running turn is taken, belongs to the session, and begins no turn of its own",
    needs: ["streams"],
    run: (bench) =>
      Effect.gen(function*() {
        const session = yield* bench.open("streams")
        if (bench.harness.capabilities.steering === "unsupported") return assert.equal(session.steer, undefined)
        const steer = session.steer ?? (() => Effect.succeed(false))
        const message = Prompt.fromText("rather this")
        assert.equal(yield* steer(message), false, "no turn runs yet")
        const watched = yield* Bench.watch(session, Situation.promptOf("streams"), Bench.isText)
        assert.equal(yield* steer(message), true)
        yield* session.interrupt
        yield* Bench.ended(watched)
        assert.equal(yield* steer(message), false, "the turn is over")
        const { output } = yield* Bench.turn(session, "after")
        assert.deepEqual(Bench.prompts(output.text), [Situation.promptOf("streams"), "rather this", "after"])
      })
  },
  {
    name: "declared tasks outlive their turn and are waited for",
    needs: ["background"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.background_tasks === "unsupported") return
        const session = yield* bench.open("background")
        const { end } = yield* Bench.turn(session, Situation.promptOf("background"))
        assert.deepEqual(end.background, [{ id: "task-1", description: "watch" }])
        assert.equal((yield* Effect.timeoutOption(session.backgroundDone, "300 millis"))._tag, "None")
        fs.writeFileSync(path.join(bench.work, "release"), "")
        yield* session.backgroundDone
        assert.deepEqual((yield* session.close).backgroundKilled, [])
      })
  },
  {
    name: "declared tasks that still run when the session is closed are listed",
    needs: ["background"],
    run: (bench) =>
      Effect.gen(function*() {
        if (bench.harness.capabilities.background_tasks === "unsupported") return
        const session = yield* bench.open("background")
        yield* Bench.turn(session, Situation.promptOf("background"))
        assert.deepEqual((yield* session.close).backgroundKilled, [{ id: "task-1", description: "watch" }])
        yield* session.backgroundDone
        yield* Bench.nothingLeft(bench)
      })
  }
]
