/**
 * An engine in a worker thread: what it does is waited for, and the event loop is
 * free meanwhile, however long the disk takes.
 */
import { Worker } from "node:worker_threads"
import * as Engine from "./sqliteEngine.ts"

/** A failure as it comes out of the thread. */
export interface ThreadFailure {
  readonly message: string
  readonly errcode: number | undefined
}

interface Request {
  readonly id: number
  readonly operation: Engine.Operation
}

type Answer =
  | { readonly id: number; readonly rows: Engine.Rows }
  | { readonly id: number; readonly failure: ThreadFailure }

interface Port {
  readonly on: (event: "message", listener: (request: Request) => void) => unknown
  readonly postMessage: (answer: Answer) => void
}

/** What runs in the thread. Refers to nothing but its parameters, like {@link Engine.open}. */
const serve = (port: Port, open: () => Engine.Engine) => {
  let engine: Engine.Engine | undefined
  port.on("message", ({ id, operation }) => {
    try {
      // Opened here, so that a file that cannot be opened fails what asks for it.
      engine ??= open()
      port.postMessage({ id, rows: engine.run(operation) })
    } catch (cause) {
      const errcode = (cause as { readonly errcode?: unknown } | null)?.errcode
      port.postMessage({
        id,
        failure: { message: cause instanceof Error ? cause.message : String(cause), errcode: typeof errcode === "number" ? errcode : undefined }
      })
    }
  })
}

/**
 * The thread's program, as text: the one form that is found from the sources, from
 * a build and from a bundle, in Node.js and in Deno.
 */
const program = `
const { parentPort, workerData } = require("node:worker_threads")
const { DatabaseSync } = require("node:sqlite")
const open = ${Engine.open.toString()}
;(${serve.toString()})(parentPort, () => open(DatabaseSync, workerData))
`

export interface Thread {
  /** Answers by calling back, in the order in which it was asked. */
  readonly ask: (operation: Engine.Operation, onRows: (rows: Engine.Rows) => void, onFailure: (failure: ThreadFailure) => void) => void
  readonly end: () => Promise<void>
}

interface Asked {
  readonly onRows: (rows: Engine.Rows) => void
  readonly onFailure: (failure: ThreadFailure) => void
}

/** Begins a thread. It keeps the process alive only while it is asked something. */
export const begin = (target: Engine.Target): Thread => {
  // Without the flags of this process, of which some say how a program's text is to be read.
  const worker = new Worker(program, { eval: true, execArgv: [], workerData: target, name: "turnpike sessions" })
  const asked = new Map<number, Asked>()
  let next = 0
  let ended: string | undefined

  const fail = (message: string) => {
    ended = message
    const all = [...asked.values()]
    asked.clear()
    for (const { onFailure } of all) onFailure({ message, errcode: undefined })
  }
  worker.unref()
  worker.on("message", (answer: Answer) => {
    const one = asked.get(answer.id)
    asked.delete(answer.id)
    if (asked.size === 0) worker.unref()
    if (one === undefined) return
    if ("rows" in answer) one.onRows(answer.rows)
    else one.onFailure(answer.failure)
  })
  worker.on("error", (cause) => fail(`the thread that writes the sessions failed: ${cause instanceof Error ? cause.message : String(cause)}`))
  worker.on("exit", () => fail("the thread that writes the sessions has ended"))

  return {
    ask: (operation, onRows, onFailure) => {
      if (ended !== undefined) return onFailure({ message: ended, errcode: undefined })
      const id = next++
      if (asked.size === 0) worker.ref()
      asked.set(id, { onRows, onFailure })
      const request: Request = { id, operation }
      worker.postMessage(request)
    },
    end: async () => {
      await worker.terminate()
    }
  }
}
