/**
 * Takes a session's lock as soon as it is told to, says what came of it, and
 * holds it until its standard input ends.
 */
import * as SessionLock from "../../src/SessionLock.ts"

const [directory = ""] = process.argv.slice(2)

process.stdout.write("ready\n")
process.stdin.once("data", () => {
  const outcome = SessionLock.acquire(directory)
  process.stdout.write(`${outcome._tag}${outcome._tag === "Busy" ? ` ${outcome.holder.pid}` : ""}\n`)
  process.stdin.on("end", () => {
    if (outcome._tag === "Held") outcome.release()
    process.exit(0)
  })
  process.stdin.resume()
})
