/**
 * Text in columns of a terminal: how wide it is there, and cut so that it fits.
 */
import { Printable } from "@turnpike/channel-terminal"

/** What stands in two columns: the wide ranges of Unicode's East Asian Width, and pictures that are shown in colour. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u

/** What stands in none: marks over other characters, and what only says how they join. */
const narrow = /[\p{Mn}\p{Me}\p{Cf}]/u

const softHyphen = 0xad

/** Whether a text is one line of characters that are one column wide, as nearly all are, without space at its ends or two together. */
const isSimple = (text: string): boolean => {
  let before = 0x20
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    const isLatin = (code >= 0x20 && code <= 0x7e) || (code > 0xa0 && code <= 0xff && code !== softHyphen)
    if (!isLatin || (code === 0x20 && before === 0x20)) return false
    before = code
  }
  return before !== 0x20 || text === ""
}

const widthOf = (character: string): number => wide.test(character) ? 2 : narrow.test(character) ? 0 : 1

/** How many columns a text of one line takes. */
export const width = (text: string): number => {
  if (isSimple(text)) return text.length
  let columns = 0
  for (const character of text) columns += widthOf(character)
  return columns
}

/** The text as one line of at most so many columns, control characters shown; what is cut off is said by `…`. */
export const fit = (text: string, columns: number): string => {
  if (text.length <= columns && isSimple(text)) return text
  // A character takes no more than two units for each column, but for marks, of which nobody needs that many.
  const line = Printable.oneLine(text, Number.isFinite(columns) ? Math.max(1, columns) * 4 : Number.MAX_SAFE_INTEGER)
  return cut(line, columns)
}

/** A text of one line without what is beyond so many columns, which `…` stands for. */
export const cut = (line: string, columns: number): string => {
  if (width(line) <= columns) return line
  let room = columns - 1
  let kept = ""
  for (const character of line) {
    room -= widthOf(character)
    if (room < 0) break
    kept += character
  }
  return `${kept}…`
}

/** The text cut and filled up to so many columns. */
export const left = (text: string, columns: number): string => {
  if (text.length <= columns && isSimple(text)) return text.padEnd(columns)
  const fitting = fit(text, columns)
  return `${fitting}${" ".repeat(Math.max(0, columns - width(fitting)))}`
}
