/**
 * A program at the other end of a pipe that speaks in JSON objects: one a line,
 * or each behind a header with its length.
 *
 * Frames go out in the order of the calls. What comes in is read
 * once, by whoever runs `received`; while nobody reads, the program is held
 * back. A frame that answers a request goes to whoever waits for it and to
 * nobody else; an answer that nobody waits for is delivered like any frame.
 * When the program's output ends, all that wait fail: nothing waits for ever.
 */
import type { Line, ProcessError } from "@turnpike/process"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as ContentLength from "./ContentLength.ts"
import * as Frame from "./Frame.ts"

/** The program's output has ended, or it no longer reads its input. */
export class PeerClosed extends Schema.TaggedError<PeerClosed>()("PeerClosed", { detail: Schema.String }) {
  override get message() {
    return `the program no longer answers: ${this.detail}`
  }
}

/** The program did not answer a request in the time that the caller gave it. It may still do so: then the answer is an ordinary frame. */
export class AnswerLate extends Schema.TaggedError<AnswerLate>()("AnswerLate", { requestId: Schema.String }) {
  override get message() {
    return `the program did not answer request ${this.requestId} in time`
  }
}

/** The part of a child process that a peer needs. */
export interface Pipe {
  /** Completes when the text was taken; waits while the program does not read. */
  readonly write: (text: string) => Effect.Effect<void, ProcessError.ProcessError>
  /** The program's output; has one reader. */
  readonly lines: Stream.Stream<Line.Line, ProcessError.ProcessError>
}

/** The same for a program whose frames are no lines. */
export interface BytePipe {
  readonly write: (text: string) => Effect.Effect<void, ProcessError.ProcessError>
  readonly bytes: Stream.Stream<Uint8Array, ProcessError.ProcessError>
}

/** How frames are written and read. */
interface Framing {
  readonly write: (frame: Frame.Frame) => Effect.Effect<void, ProcessError.ProcessError>
  readonly items: Stream.Stream<Frame.Received, ProcessError.ProcessError>
}

export interface JsonlPeer {
  /** All that the program says, in order, but for awaited answers. Ends with the program's output. Run it once. */
  readonly received: Stream.Stream<Frame.Received, ProcessError.ProcessError>
  readonly send: (frame: Frame.Frame) => Effect.Effect<void, PeerClosed>
  /**
   * Sends a frame and returns the frame that answers it. `received` must be
   * running. Interrupting it takes the request back from here, not from the program.
   */
  readonly request: (
    id: string,
    frame: Frame.Frame,
    deadline: Duration.Input
  ) => Effect.Effect<Frame.Frame, PeerClosed | AnswerLate>
}

type Answers = (frame: Frame.Frame) => string | undefined

/** Makes a peer that speaks in lines. `answers` says which request a frame answers; `undefined` for a frame that is no answer. */
export const make = (pipe: Pipe, answers: Answers): Effect.Effect<JsonlPeer> =>
  over({
    write: (frame) => pipe.write(`${JSON.stringify(frame)}\n`),
    items: pipe.lines.pipe(Stream.map((line) => Frame.fromLine(line)), Stream.flattenIterable)
  }, answers)

/** Makes a peer whose frames announce their length, by `ContentLength`. */
export const makeContentLength = (pipe: BytePipe, answers: Answers): Effect.Effect<JsonlPeer> =>
  over({
    write: (frame) => pipe.write(ContentLength.encode(frame)),
    items: Stream.suspend(() => {
      const decoder = ContentLength.decoder()
      return Stream.concat(
        Stream.map(pipe.bytes, decoder.push),
        Stream.suspend(() => Stream.make(decoder.end()))
      ).pipe(Stream.flattenIterable)
    })
  }, answers)

const over = (framing: Framing, answers: Answers): Effect.Effect<JsonlPeer> =>
  Effect.gen(function*() {
    const waiting = new Map<string, Deferred.Deferred<Frame.Frame, PeerClosed>>()
    const ended = yield* Deferred.make<never, PeerClosed>()
    let closedBy: PeerClosed | undefined
    const closed = (detail: string) => {
      const error = new PeerClosed({ detail })
      closedBy = error
      Deferred.doneUnsafe(ended, Effect.fail(error))
      for (const deferred of waiting.values()) Deferred.doneUnsafe(deferred, Effect.fail(error))
      waiting.clear()
    }
    const answered = (item: Frame.Received): boolean => {
      if (item._tag !== "Frame") return false
      const id = answers(item.frame)
      const deferred = id === undefined ? undefined : waiting.get(id)
      if (id === undefined || deferred === undefined) return false
      waiting.delete(id)
      return Deferred.doneUnsafe(deferred, Effect.succeed(item.frame))
    }
    const send: JsonlPeer["send"] = (frame) =>
      Effect.suspend(() =>
        closedBy === undefined
          ? framing.write(frame).pipe(
            Effect.mapError((error) => new PeerClosed({ detail: error.message })),
            Effect.raceFirst(Deferred.await(ended))
          )
          : Effect.fail(closedBy)
      )
    return {
      send,
      received: framing.items.pipe(
        // One by one: an answer must not overtake what was said before it.
        Stream.rechunk(1),
        Stream.filter((item) => !answered(item)),
        Stream.ensuring(Effect.sync(() => closed("its output has ended")))
      ),
      request: (id, frame, deadline) =>
        Effect.gen(function*() {
          const deferred = yield* Deferred.make<Frame.Frame, PeerClosed>()
          waiting.set(id, deferred)
          // A program may have answered and gone before it was asked: then the answer counts, not that nobody listened.
          yield* Effect.catch(send(frame), (closed) => Deferred.isDoneUnsafe(deferred) ? Effect.void : Effect.fail(closed))
          return yield* Deferred.await(deferred).pipe(
            Effect.raceFirst(Deferred.await(ended)),
            Effect.timeoutOrElse({
              duration: deadline,
              orElse: () => Effect.fail(new AnswerLate({ requestId: id }))
            })
          )
        }).pipe(Effect.ensuring(Effect.sync(() => waiting.delete(id))))
    }
  })
