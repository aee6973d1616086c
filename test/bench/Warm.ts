/**
 * The second turn of a conversation: to a session of turnpike that is warm, against the CLI's own way
 * to go on with a conversation, which starts it anew.
 *
 * Warm is measured from the prompt's line into `turnpike chat --format events` to the result's line out
 * of it. The CLI's own is the time of the whole process. What one would take instead is measured as it
 * measures itself: from the call to the answer, in one process; acpx, whose warm process is behind a
 * command of its own, as that command.
 */
import { CodexWire } from "@turnpike/harness-codex"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as path from "node:path"
import * as Benchmark from "./support/Benchmark.ts"
import * as Clis from "./support/Clis.ts"

/** The milliseconds of each turn after the first, and all answers. */
interface Conversation {
  readonly ms: ReadonlyArray<number>
  readonly answers: ReadonlyArray<string>
}

type Talk = (desk: Clis.Desk, prompts: ReadonlyArray<string>, bundle: string) => Promise<Conversation>

const chat: Talk = (desk, prompts, bundle) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [path.join(bundle, "bin.js"), "chat", `--harness=${desk.cli}`, `--program=${desk.program}`, "--format=events"], {
      cwd: desk.place.work,
      env: desk.env,
      stdio: ["pipe", "pipe", "pipe"]
    })
    const ms: Array<number> = []
    const answers: Array<string> = []
    let begun = 0
    let rest = ""
    let stderr = ""
    const ask = () => {
      begun = performance.now()
      child.stdin.write(`${JSON.stringify({ type: "prompt", text: prompts[answers.length] })}\n`)
    }
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text)
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        if (!line.includes(`"type":"result"`)) continue
        if (answers.length > 0) ms.push(performance.now() - begun)
        const { result } = JSON.parse(line)
        answers.push(result.result.success ? result.result.summary : JSON.stringify(result.error))
        if (answers.length < prompts.length) ask()
        else child.stdin.end()
      }
    })
    const timer = setTimeout(() => child.kill("SIGTERM"), 90_000)
    child.on("error", reject)
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code === 0) resolve({ ms, answers })
      else reject(new Benchmark.Invalid(`turnpike chat --harness ${desk.cli} ended with exit ${code}: ${stderr}`))
    })
    ask()
  })

/** Starts the CLI for each prompt. */
const bare: Talk = async (desk, prompts) => {
  const id = randomUUID()
  const ms: Array<number> = []
  const answers: Array<string> = []
  for (const [index, prompt] of prompts.entries()) {
    const ran = await Clis.run(desk, desk.program, index === 0 ? Clis.bare[desk.cli].first(id) : Clis.bare[desk.cli].resume(id), prompt)
    answers.push(ran.stdout.trim().split("\n").at(-1) ?? "")
    if (index > 0) ms.push(ran.ms)
  }
  return { ms, answers }
}

const sdk: Talk = async (desk, prompts) => {
  const { stdout } = await Clis.run(desk, process.execPath, [Clis.sdk[desk.cli].file, desk.program, ...prompts], "")
  const turns = JSON.parse(stdout) as ReadonlyArray<{ readonly answer: string; readonly ms: number }>
  return { ms: turns.slice(1).map((turn) => turn.ms), answers: turns.map((turn) => turn.answer) }
}

/** Codex's warm form without anything around it: as little of a client as can be. What turnpike adds is the difference. */
const appServer: Talk = (desk, prompts) =>
  new Promise((resolve, reject) => {
    const child = spawn(desk.program, ["app-server"], { cwd: desk.place.work, env: desk.env, stdio: ["pipe", "pipe", "ignore"] })
    const ms: Array<number> = []
    const answers: Array<string> = []
    let thread = ""
    let begun = 0
    let rest = ""
    let answer = ""
    const send = (frame: object) => void child.stdin.write(`${JSON.stringify(frame)}\n`)
    const ask = () => {
      begun = performance.now()
      send(CodexWire.startTurn(`turn-${answers.length}`, thread, prompts[answers.length] ?? "", { approvalPolicy: "never", sandboxPolicy: { type: "readOnly", networkAccess: false } }))
    }
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        const { id, method, params, result } = JSON.parse(line)
        if (id === "initialize") {
          send(CodexWire.initialized)
          send(CodexWire.startThread("thread", { cwd: desk.place.work, model: undefined, developerInstructions: undefined, approvalPolicy: "never", sandbox: "read-only", webSearch: "disabled" }))
        } else if (id === "thread") {
          thread = result.thread.id
          ask()
        } else if (method === "item/completed" && params.item.type === "agentMessage") answer = params.item.text
        else if (method === "turn/completed") {
          if (answers.length > 0) ms.push(performance.now() - begun)
          answers.push(answer)
          if (answers.length < prompts.length) ask()
          else child.stdin.end()
        }
      }
    })
    const timer = setTimeout(() => child.kill("SIGKILL"), 90_000)
    child.on("error", reject)
    child.on("close", () => {
      clearTimeout(timer)
      resolve({ ms, answers })
    })
    send(CodexWire.initialize("initialize", "0.0.0"))
  })

/** A session of acpx keeps its agent in a process behind the command; the time is the command's. */
const acpx: Talk = async (desk, prompts) => {
  const call = (...args: ReadonlyArray<string>) => Clis.run(desk, process.execPath, [Clis.acpx, ...Clis.acpxArguments, "--ttl", "20", ...args], "", Clis.acpxEnv(desk))
  await call("sessions", "new")
  const ms: Array<number> = []
  const answers: Array<string> = []
  try {
    for (const [index, prompt] of prompts.entries()) {
      const ran = await call("prompt", prompt)
      answers.push(ran.stdout.trim())
      if (index > 0) ms.push(ran.ms)
    }
  } finally {
    await call("sessions", "close")
  }
  return { ms, answers }
}

export const benchmark: Benchmark.Benchmark = {
  name: "warm",
  summary: "the second turn of a warm session against the CLI's own resume",
  needs: ["real", "peers"],
  run: async ({ bundle, quick, say, undisturbed }) => {
    const check = Benchmark.checker()
    const rounds = quick ? 1 : 7
    const prompts = quick ? ["one", "two"] : ["one", "two", "three"]
    const samples: Record<string, Array<number>> = {}
    const figures: Array<Benchmark.Figure> = []
    const model = await Clis.model()
    try {
      for (const cli of ["claude", "codex", "copilot"] as const) {
        const ways: ReadonlyArray<readonly [name: string, talk: Talk]> = [
          [`${cli} itself, resumed`, bare],
          [`turnpike chat --harness ${cli}, warm`, chat],
          [`${Clis.sdk[cli].name}, same session`, sdk],
          ...(cli === "claude" ? [["acpx, same session", acpx] as const] : []),
          ...(cli === "codex" ? [["codex app-server, spoken to directly", appServer] as const] : [])
        ]
        for (let round = 1; round <= rounds; round++) {
          say(`warm: ${cli}, round ${round} of ${rounds}`)
          const done = await undisturbed(async () => {
            const told: Array<readonly [name: string, Conversation]> = []
            for (const [name, talk] of [...ways.slice(round % ways.length), ...ways.slice(0, round % ways.length)]) {
              const desk = model.desk(cli)
              try {
                const conversation = await talk(desk, prompts, bundle)
                // Each answer tells all prompts so far: the conversation went on.
                check.equal(`the answers of ${name}`, conversation.answers, prompts.map((_, index) => Clis.answerTo(...prompts.slice(0, index + 1))))
                told.push([name, conversation])
              } finally {
                desk.remove()
              }
            }
            return told
          })
          for (const [name, { ms }] of done) (samples[name] ??= []).push(...ms.map((one) => Math.round(one * 10) / 10))
        }
        const own = samples[`${cli} itself, resumed`]!
        for (const [name] of ways) {
          const times = samples[name]!
          figures.push(Benchmark.figure(name, "ms", times))
          if (times === own) continue
          figures.push(Benchmark.figure(
            `${name}: ratio to ${cli} itself, resumed`,
            "×",
            times.map((ms, index) => ms / own[index]!),
            name.startsWith("turnpike") ? { kind: "at most", value: 0.15 } : undefined
          ))
        }
      }
    } finally {
      await model.close()
    }
    return { figures, samples, checks: check.count() }
  }
}
