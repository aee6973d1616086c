/**
 * Plays a scenario: reads prompts, plays the turns that answer them, and does
 * to its own process whatever the scenario asks for.
 *
 * One turn runs at a time and prompts queue in order. What a turn plays after
 * its end goes on beside the next one. An interrupt stops the running turn's
 * list where it waits; the dialect or `on_interrupt` then ends the turn.
 */
import * as fs from "node:fs"
import * as timers from "node:timers/promises"
import type { Action, Actions, Json, Scenario, Turn } from "../ScenarioLanguage.ts"
import * as Children from "./Children.ts"
import type { Dialect, DialectHost, DialectModule, Piece, SessionState, TurnState } from "./Dialect.ts"
import * as Input from "./Input.ts"
import type { Output } from "./Output.ts"
import * as SessionFile from "./SessionFile.ts"

export interface Options {
  readonly scenario: Scenario
  readonly module: DialectModule
  /** The dialect's own arguments. */
  readonly argv: ReadonlyArray<string>
  readonly output: Output
}

/** What is being played: for which turn, and what stops it. */
interface Context {
  readonly turn: TurnState | undefined
  readonly stop: AbortSignal
  readonly round: number
}

/** The list was stopped; nobody is told. */
class Stopped extends Error {}

type SignalName = "SIGHUP" | "SIGINT" | "SIGQUIT" | "SIGTERM" | "SIGUSR1" | "SIGUSR2"

/** Waits for a promise or until the list is stopped. */
const orStopped = <A>(stop: AbortSignal, promise: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const stopped = () => reject(new Stopped())
    if (stop.aborted) return stopped()
    stop.addEventListener("abort", stopped, { once: true })
    promise.then(resolve, reject).finally(() => stop.removeEventListener("abort", stopped))
  })

/** Cuts a text into so many pieces, or into its words. */
export const cut = (text: string, pieces: number | undefined): ReadonlyArray<string> => {
  if (text === "") return []
  if (pieces === undefined) return text.match(/\s*\S+\s*$|\s*\S+\s/gu) ?? [text]
  const points = Array.from(text)
  const size = Math.max(1, Math.ceil(points.length / Math.max(1, pieces)))
  return Array.from({ length: Math.ceil(points.length / size) }, (_, i) => points.slice(i * size, (i + 1) * size).join(""))
}

const isFor = (turn: Turn, prompt: string): boolean => {
  const { contains, equals, matches } = turn.when ?? {}
  return (equals === undefined || prompt === equals)
    && (contains === undefined || prompt.includes(contains))
    && (matches === undefined || new RegExp(matches, "u").test(prompt))
}

/** Plays until the process exits. */
export const play = async ({ argv, module, output, scenario }: Options): Promise<void> => {
  let state: SessionState | undefined
  let directory = ""
  let running: { readonly turn: TurnState; readonly abort: AbortController } | undefined
  let turns = 0
  let inputEnded = false
  let isOpened = false
  let reads = true
  let ignoresInterrupts = false
  let ignoresEof = false
  const played = new Set<Turn>()
  const queue: Array<{ readonly id: string; readonly text: string }> = []
  const pending = new Set<Promise<void>>()
  const answers = new Map<string, (answer: { readonly allow: boolean; readonly reason: string }) => void>()
  const interruptWaiters: Array<() => void> = []
  const eofWaiters: Array<() => void> = []
  /** Turns that nobody asked for, which come before the prompts that wait. */
  const ownTurns: Array<() => void> = []

  /** Why a session cannot be resumed: by what is remembered, and by what the scenario says. */
  const refusalOf = (id: string): "unknown" | "in_use" | undefined =>
    scenario.resume === "unknown" || (scenario.resume === undefined && SessionFile.read(directory, id) === undefined)
      ? "unknown"
      : scenario.resume === "in_use"
      ? "in_use"
      : undefined
  /** What a session that is resumed begins with. */
  const resumed = (id: string) => ({
    id: scenario.resume === "new_id" ? crypto.randomUUID() : id,
    resumed: true,
    prompts: scenario.memory === "forgets" ? [] : [...(SessionFile.read(directory, id)?.prompts ?? [])]
  })

  const host: DialectHost = {
    argv,
    env: process.env,
    cwd: process.cwd(),
    scenario,
    frame: output.frame,
    session: () => {
      if (state === undefined) throw new Error("the session is not open")
      return state
    },
    resume: (id) => {
      const refusal = refusalOf(id)
      if (refusal === undefined) state = { ...host.session(), ...resumed(id) }
      return refusal ?? "resumed"
    }
  }
  const dialect: Dialect = module.makeDialect(host)
  if (dialect.framing === "content-length") output.announceLengths()

  // Nothing but `exit` ends the process, also when no input is read and nothing is waited for.
  setInterval(() => {}, 3_600_000)

  const exit = async (code: number): Promise<never> => {
    output.buffer(0)
    await output.flushed()
    process.exit(code)
  }

  const fill = (text: string, { round, turn }: Context): string =>
    text.replace(/\{\{(env:\w+|\w+)\}\}/gu, (hole, name: string) => {
      if (name.startsWith("env:")) return process.env[name.slice(4)] ?? ""
      switch (name) {
        case "prompt":
          return turn?.prompt ?? ""
        case "prompts":
          return JSON.stringify(state?.prompts ?? [])
        case "session":
          return state?.id ?? ""
        case "model":
          return state?.model ?? ""
        case "system":
          return state?.system ?? ""
        case "tools":
          return JSON.stringify(state?.tools ?? [])
        case "turn":
          return String(turn?.number ?? 0)
        case "cwd":
          return process.cwd()
        case "pid":
          return String(process.pid)
        case "args":
          return JSON.stringify(argv)
        case "i":
          return String(round)
        default:
          return hole
      }
    })
  const fillJson = (value: Json, context: Context): Json =>
    typeof value === "string"
      ? fill(value, context)
      : Array.isArray(value)
      ? value.map((each: Json) => fillJson(each, context))
      : typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fillJson(each, context)]))
      : value

  /** The turn that an action is for. Words outside a turn are a mistake in the scenario. */
  const turnOf = (context: Context, action: Action): TurnState => {
    if (context.turn === undefined) throw new Error(`${action.type} has no turn to belong to here`)
    return context.turn
  }

  const stream = async (context: Context, action: Extract<Action, { type: "text" | "reasoning" }>) => {
    const turn = turnOf(context, action)
    const whole: Piece = { kind: action.type, text: fill(action.text, context) }
    const delay = action.delay_ms ?? 0
    dialect.messageStarted(turn, whole.kind)
    for (const text of cut(whole.text, action.pieces)) {
      dialect.piece(turn, { kind: whole.kind, text })
      if (whole.kind === "text" && turn.ending === undefined) turn.text += text
      if (delay > 0) await orStopped(context.stop, timers.setTimeout(delay))
      else if (context.stop.aborted) throw new Stopped()
    }
    if (action.unfinished !== true) dialect.messageEnded(turn, whole)
  }

  const ending = (context: Context, how: NonNullable<TurnState["ending"]>, write: (turn: TurnState) => void) => {
    const turn = context.turn
    if (turn === undefined) return
    write(turn)
    turn.ending ??= how
    if (running?.turn === turn) {
      running = undefined
      void next()
    }
  }

  const waitForSignal = (signal: SignalName): Promise<void> => new Promise((resolve) => process.once(signal, () => resolve()))

  const waitForFile = async (path: string, stop: AbortSignal): Promise<void> => {
    while (!fs.existsSync(path)) await orStopped(stop, timers.setTimeout(5))
  }

  const run = async (action: Action, context: Context): Promise<void> => {
    switch (action.type) {
      case "text":
      case "reasoning":
        return stream(context, action)
      case "tool_call":
        turnOf(context, action).text = ""
        return dialect.say(turnOf(context, action), { ...action, id: fill(action.id, context), input: fillJson(action.input ?? {}, context) })
      case "tool_result":
        return dialect.say(turnOf(context, action), { ...action, id: fill(action.id, context), output: fill(action.output, context) })
      case "ask":
        return ask({ ...action, id: fill(action.id, context), input: fillJson(action.input ?? {}, context) }, context)
      case "usage": {
        const turn = turnOf(context, action)
        turn.usage = action
        return dialect.say(turn, action)
      }
      case "todo":
      case "retry":
        return dialect.say(turnOf(context, action), action)
      case "note":
        return dialect.say(turnOf(context, action), { ...action, text: fill(action.text, context) })
      case "background":
        return dialect.say(turnOf(context, action), action)
      case "bind": {
        if (action.session_id !== undefined && state !== undefined) SessionFile.write(directory, { id: action.session_id, prompts: state.prompts })
        return dialect.say(turnOf(context, action), action)
      }
      case "end":
        return ending(context, "ended", (turn) =>
          dialect.end(turn, action.text === undefined ? action : { ...action, text: fill(action.text, context) }))
      case "fail":
        return ending(context, "failed", (turn) => dialect.fail(turn, { ...action, message: fill(action.message, context) }))
      case "frame":
        return output.frame(fillJson(action.value, context))
      case "write":
        return output.bytes(action.text === undefined ? Buffer.from(action.base64 ?? "", "base64") : Buffer.from(action.text))
      case "huge_line":
        return hugeLine(action.bytes)
      case "join_next":
        return output.joinNext()
      case "buffer_writes":
        return output.buffer(action.bytes)
      case "chunk_writes":
        return output.chunk(action.bytes)
      case "stderr":
        return output.stderr(fill(action.text, context).repeat(action.times ?? 1))
      case "spawn": {
        await output.flushed()
        const filled = {
          ...action,
          argv: action.argv.map((argument) => fill(argument, context)),
          ...(action.pid_file === undefined ? {} : { pid_file: fill(action.pid_file, context) })
        }
        return orStopped(context.stop, Children.start(filled))
      }
      case "write_file":
        return Children.writeFileWhole(fill(action.path, context), fill(action.text, context))
      case "ignore_signals":
        for (const signal of action.signals) process.on(signal as SignalName, () => {})
        return
      case "ignore_interrupts":
        ignoresInterrupts = true
        return
      case "ignore_eof":
        ignoresEof = true
        return
      case "stop_reading":
        reads = false
        process.stdin.pause()
        return
      case "close":
        if (action.stream !== "stdin") return output.close(action.stream)
        process.stdin.destroy()
        return
      case "exit":
        return exit(action.code)
      case "kill":
        await output.flushed()
        process.kill(process.pid, action.signal)
        // A deadly signal arrives before the next action; one that is handled does not stop the list.
        await timers.setTimeout(20)
        return
      case "delay":
        return orStopped(context.stop, timers.setTimeout(action.ms))
      case "wait_for":
        switch (action.what) {
          case "interrupt":
            return orStopped(context.stop, new Promise((resolve) => interruptWaiters.push(resolve)))
          case "eof":
            return inputEnded ? undefined : orStopped(context.stop, new Promise((resolve) => eofWaiters.push(resolve)))
          case "signal":
            return orStopped(context.stop, waitForSignal((action.signal ?? "SIGTERM") as SignalName))
          case "file":
            return waitForFile(fill(action.path ?? "", context), context.stop)
        }
      // eslint-disable-next-line no-fallthrough -- every case above returns
      case "own_turn":
        return new Promise((resolve, reject) => {
          ownTurns.push(() => void playTurn("", "", action.do).then(resolve, reject))
          next()
        })
      case "hang":
        return hang(context.stop)
      case "repeat":
        for (let round = 0; round < action.times; round++) await list(action.do, { ...context, round })
        return
      case "if_env":
        return list((process.env[action.name] === undefined ? action.unset : action.set) ?? [], context)
    }
  }

  /** Waits until the list is stopped. */
  const hang = (stop: AbortSignal): Promise<void> => orStopped(stop, new Promise<never>(() => {}))

  /** Written in pieces, so that a line of any size needs little memory here. */
  const hugeLine = async (bytes: number): Promise<void> => {
    const piece = Buffer.alloc(1 << 20, "x")
    const end = output.announce(bytes)
    for (let left = bytes; left > 0; left -= piece.length) {
      output.bytes(piece.subarray(0, Math.min(left, piece.length)))
      await output.flushed()
    }
    output.bytes(end)
  }

  const ask = async (action: Extract<Action, { type: "ask" }>, context: Context): Promise<void> => {
    const turn = turnOf(context, action)
    turn.text = ""
    const asked = dialect.ask(turn, action)
    const answer = asked.kind === "asked"
      ? await orStopped(
        context.stop,
        new Promise<{ readonly allow: boolean; readonly reason: string }>((resolve) => answers.set(asked.requestId, resolve))
      )
      : { allow: asked.kind === "allowed", reason: asked.kind === "denied" ? asked.reason : "" }
    if (answer.allow) {
      return list(action.allowed ?? [{ type: "tool_result", id: action.id, output: `${action.name} ran` }], context)
    }
    turn.denials.push({ call_id: action.id, name: action.name, input: action.input ?? {} })
    const reason = answer.reason === "" ? `${action.name} was denied` : answer.reason
    dialect.say(turn, { type: "tool_result", id: action.id, output: reason, is_error: true, denied: reason })
    return list(action.denied ?? [], context)
  }

  const list = async (actions: Actions, context: Context): Promise<void> => {
    for (const action of actions) {
      if (context.stop.aborted) throw new Stopped()
      await run(action, context)
    }
  }

  /** Plays a list to its end in the background; a mistake in it ends the process, loudly. */
  const begin = (work: Promise<void>): Promise<void> => {
    const watched = work.catch(async (cause: unknown) => {
      if (cause instanceof Stopped) return
      output.stderr(`turnpike-scripted-agent: ${cause instanceof Error ? cause.message : String(cause)}\n`)
      await exit(70)
    }).finally(() => {
      pending.delete(watched)
      void leaveWhenDone()
    })
    pending.add(watched)
    return watched
  }

  const outside: Context = { turn: undefined, stop: new AbortController().signal, round: 0 }

  const next = (): void => {
    if (running !== undefined) return
    const own = ownTurns.shift()
    if (own !== undefined) return own()
    const prompt = queue.shift()
    if (prompt === undefined) {
      void leaveWhenDone()
      return
    }
    const session = host.session()
    session.prompts.push(prompt.text)
    SessionFile.write(directory, session)
    const script = scenario.turns.find((each) => (each.repeats === true || !played.has(each)) && isFor(each, prompt.text))
    if (script !== undefined) played.add(script)
    void begin(playTurn(prompt.id, prompt.text, script?.do ?? [{ type: "fail", code: "HARNESS_FAILED", message: "the scenario has no turn for this prompt" }]))
  }

  /** Begins a turn, which has to be the only one, and plays its list to the end. */
  const playTurn = async (promptId: string, prompt: string, actions: Actions): Promise<void> => {
    const turn: TurnState = { number: ++turns, promptId, prompt, text: "", usage: undefined, denials: [], ending: undefined }
    const abort = new AbortController()
    running = { turn, abort }
    dialect.turnStarted(turn)
    await list(actions, { turn, stop: abort.signal, round: 0 })
    if (turn.ending === undefined) await hang(abort.signal)
  }

  const interrupt = (): void => {
    for (const waiter of interruptWaiters.splice(0)) waiter()
    if (running === undefined || ignoresInterrupts) return
    const { abort, turn } = running
    abort.abort()
    const context = { turn, stop: new AbortController().signal, round: 0 }
    if (scenario.on_interrupt === undefined) ending(context, "interrupted", dialect.interrupted)
    else void begin(list(scenario.on_interrupt, context))
  }

  const leaveWhenDone = async (): Promise<void> => {
    if (!inputEnded || ignoresEof || running !== undefined || queue.length > 0 || ownTurns.length > 0 || pending.size > 0) return
    await exit(dialect.exitCode())
  }

  const onFrame = async (text: string): Promise<void> => {
    const input = dialect.read(text)
    if (!isOpened && !(input.kind === "handled" && input.opening === true)) {
      isOpened = true
      // Nothing else is read before this has been played.
      process.stdin.pause()
      void begin(list(scenario.after_opening ?? [], outside).then(() => {
        if (reads) process.stdin.resume()
      }))
    }
    switch (input.kind) {
      case "prompt":
        queue.push({ id: input.id, text: input.text })
        return next()
      case "interrupt":
        return interrupt()
      case "answer":
        answers.get(input.requestId)?.(input)
        answers.delete(input.requestId)
        return
      case "exit":
        output.stderr(input.stderr)
        return exit(input.code)
      case "handled":
        return
    }
  }

  const onEnd = (): void => {
    if (inputEnded) return
    inputEnded = true
    for (const waiter of eofWaiters.splice(0)) waiter()
    if (scenario.on_eof === undefined) void leaveWhenDone()
    else void begin(list(scenario.on_eof, { ...outside, turn: running?.turn }))
  }

  const listen = (): void => {
    const read = Input.reader(dialect.framing ?? "lines")
    process.stdin.on("data", (chunk: Buffer) => {
      for (const text of read(chunk)) void begin(onFrame(text))
    })
    process.stdin.on("end", onEnd)
    process.stdin.on("error", onEnd)
  }

  const onSignal = (name: "SIGINT" | "SIGTERM", actions: Actions | undefined): void => {
    if (actions !== undefined) {
      process.on(name, () => void begin(list(actions, { ...outside, turn: running?.turn })))
    } else if (dialect.signalled(name, undefined) !== undefined) {
      process.on(name, () => {
        running?.abort.abort()
        const answer = dialect.signalled(name, running?.turn)
        if (answer !== undefined) void exit(answer.code)
      })
    }
  }

  const opening = dialect.open()
  if (opening.kind === "exit") {
    output.bytes(Buffer.from(opening.stdout))
    output.stderr(opening.stderr)
    return exit(opening.code)
  }
  directory = opening.directory
  const { session } = opening
  const refusal = session.kind === "resume"
    ? refusalOf(session.id)
    : session.id !== undefined && SessionFile.read(directory, session.id) !== undefined
    ? "in_use"
    : undefined
  if (refusal !== undefined) {
    const answer = dialect.refuse(refusal, session.id ?? "")
    output.stderr(answer.stderr)
    return exit(answer.code)
  }
  const begun = session.kind === "resume" ? resumed(session.id) : { id: session.id ?? crypto.randomUUID(), resumed: false, prompts: [] }
  state = {
    ...begun,
    id: (session.kind === "resume" ? session.newId : undefined) ?? begun.id,
    model: opening.model ?? scenario.model ?? "scripted-1",
    system: opening.system ?? "",
    tools: scenario.tools ?? []
  }
  onSignal("SIGINT", scenario.on_sigint)
  onSignal("SIGTERM", scenario.on_sigterm)
  await begin(list(scenario.start ?? [], outside))
  dialect.opened()
  listen()
}
