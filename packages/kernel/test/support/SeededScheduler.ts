/**
 * Runs ready fibers in an order that a seed decides, and lets them yield where
 * the seed says: the interleavings that the ordinary scheduler never shows.
 */
import type * as Scheduler from "effect/Scheduler"
import * as Random from "./Random.ts"

export const make = (seed: number): Scheduler.Scheduler => {
  const random = Random.make(seed)
  const queue: Array<() => void> = []
  let scheduled = false
  const drain = () => {
    while (queue.length > 0) {
      const [task] = queue.splice(random.below(queue.length), 1)
      task?.()
    }
  }
  const kick = () => {
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      drain()
      scheduled = false
      if (queue.length > 0) kick()
    })
  }
  return {
    executionMode: "async",
    shouldYield: () => random.chance(0.2),
    makeDispatcher: () => ({
      scheduleTask: (task) => {
        queue.push(task)
        kick()
      },
      flush: drain
    })
  }
}
