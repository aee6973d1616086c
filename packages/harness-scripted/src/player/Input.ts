/**
 * What the agent reads, cut into frames.
 */

const lines = (): (chunk: Buffer) => ReadonlyArray<string> => {
  // Buffers are joined only when a line is complete, so that a long line costs no more than its length.
  let parts: Array<Buffer> = []
  return (chunk) => {
    const texts: Array<string> = []
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at))
      const line = Buffer.concat(parts).toString("utf8")
      parts = []
      from = at + 1
      if (line.trim() !== "") texts.push(line)
    }
    if (from < chunk.length) parts.push(chunk.subarray(from))
    return texts
  }
}

const separator = "\r\n\r\n"

/** What has no length before it is passed over up to the next header: whoever writes to an agent knows its protocol. */
const announced = (): (chunk: Buffer) => ReadonlyArray<string> => {
  let parts: Array<Buffer> = []
  let size = 0
  /** The length of the body that is awaited; undefined while a header is. */
  let wanted: number | undefined
  return (chunk) => {
    const texts: Array<string> = []
    parts.push(chunk)
    size += chunk.length
    while (wanted === undefined ? size > 0 : size >= wanted) {
      const whole = Buffer.concat(parts)
      let rest: Buffer
      if (wanted === undefined) {
        const end = whole.indexOf(separator)
        parts = [whole]
        if (end === -1) break
        wanted = Number(/content-length: *(\d+)/i.exec(whole.subarray(0, end).toString("latin1"))?.[1] ?? 0)
        rest = whole.subarray(end + separator.length)
      } else {
        texts.push(whole.subarray(0, wanted).toString("utf8"))
        rest = whole.subarray(wanted)
        wanted = undefined
      }
      parts = [rest]
      size = rest.length
    }
    return texts.filter((text) => text !== "")
  }
}

/** Makes what takes the bytes in and answers the texts of the frames that are whole. */
export const reader = (framing: "lines" | "content-length"): (chunk: Buffer) => ReadonlyArray<string> =>
  framing === "lines" ? lines() : announced()
