/**
 * Text that a terminal shows and does not obey.
 *
 * What a model or a tool says may hold escape sequences: they would move the
 * cursor, rename the window or write the clipboard of whoever watches. And it may
 * turn the direction of writing around, so that a command reads as another one.
 */

/** Shows control characters, and those that turn the direction of writing, as pictures; line feeds and tabs stay. */
export const printable = (text: string): string =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd"
  })

/** One line of at most `characters`, white space collapsed, control characters shown. */
export const oneLine = (text: string, characters: number): string => {
  const line = printable(text.replace(/\s+/g, " ").trim())
  if (line.length <= characters) return line
  const cut = line.slice(0, characters - 1)
  // A surrogate pair is not cut in two.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}
