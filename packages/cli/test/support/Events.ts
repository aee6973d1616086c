/** Reads what a run wrote to standard output, and holds it to the contract. */
import { assert } from "@effect/vitest"
import { type AgentRunEvent, type AgentRunResult, StreamRules } from "@turnpike/contract"

/** The events of one run. Fails where a line is anything else, or a rule of the stream is broken. */
export const parse = (stdout: string, result: StreamRules.Options["result"] = "stream"): ReadonlyArray<AgentRunEvent.AgentRunEvent> => {
  assert.deepStrictEqual(StreamRules.validate(stdout, { result }), [])
  assert.isTrue(stdout.endsWith("\n"))
  return stdout.trimEnd().split("\n").map((line) => JSON.parse(line) as AgentRunEvent.AgentRunEvent)
}

/** The result that a stream ends with. */
export const resultOf = (stdout: string): AgentRunResult.AgentRunResult => {
  const last = parse(stdout).at(-1)
  if (last?.type !== "result") throw new Error(`the stream ends with ${last?.type}`)
  return last.result
}

/** The streams of several runs, one after the other. */
export const runs = (stdout: string): ReadonlyArray<string> => {
  const byRun = new Map<string, string>()
  for (const line of stdout.trimEnd().split("\n")) {
    const { run_id } = JSON.parse(line) as AgentRunEvent.AgentRunEvent
    byRun.set(run_id, `${byRun.get(run_id) ?? ""}${line}\n`)
  }
  assert.strictEqual([...byRun.values()].join(""), stdout)
  return [...byRun.values()]
}
