/** Moments, in milliseconds since 1970, as people read them: in the time of where they are. */

const two = (value: number): string => String(value).padStart(2, "0")

const dayOf = (date: Date): string => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`

/** The last moment that has a date; what is later, as a damaged clock may have it, is told as a number. */
const last = 8.64e15

/** Such as `2026-01-31 09:00:00`. */
export const format = (millis: number): string => {
  if (millis > last) return `${millis} ms after 1970`
  const date = new Date(millis)
  return `${dayOf(date)} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** How long ago it was, in at most 10 characters; a date where that is more than a week. */
export const ago = (millis: number, now: number): string => {
  const past = now - millis
  if (past < minute) return past < -minute ? "later" : "just now"
  if (past < hour) return `${Math.floor(past / minute)} min ago`
  if (past < day) return `${Math.floor(past / hour)} h ago`
  if (past < 7 * day) return `${Math.floor(past / day)} d ago`
  return dayOf(new Date(millis))
}
