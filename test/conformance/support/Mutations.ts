/**
 * Small damages to a JSON value, the same ones for the same seed.
 */

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** Numbers from 0 to 2^32 - 1 that depend on the seed alone (mulberry32 on an FNV-1a hash). */
const randomOf = (seed: string): (below: number) => number => {
  let state = 0x811c9dc5
  for (const character of seed) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

type Path = ReadonlyArray<string | number>

const isArray = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)

const pathsOf = (value: Json, path: Path = []): ReadonlyArray<Path> => {
  if (typeof value !== "object" || value === null) return [path]
  const children = isArray(value)
    ? value.flatMap((item, index) => pathsOf(item, [...path, index]))
    : Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))
  return [path, ...children]
}

type Edit = (value: Json) => { readonly replaced: Json } | "removed"

const edit = (value: Json, path: Path, change: Edit): Json => {
  const [key, ...rest] = path
  if (key === undefined) {
    const changed = change(value)
    return changed === "removed" ? null : changed.replaced
  }
  if (typeof value !== "object" || value === null) return value
  if (isArray(value)) {
    return value.flatMap((item, index) => {
      if (index !== key) return [item]
      return rest.length === 0 && change(item) === "removed" ? [] : [edit(item, rest, change)]
    })
  }
  return Object.fromEntries(Object.entries(value).flatMap(([name, item]): Array<[string, Json]> => {
    if (name !== key) return [[name, item]]
    return rest.length === 0 && change(item) === "removed" ? [] : [[name, edit(item, rest, change)]]
  }))
}

const wrongs: ReadonlyArray<Json> = [null, true, "", "0", "true", -1, 0, 0.5, 1e300, [], {}, "\n", "completed", 9007199254740992]

const edits = (random: (below: number) => number): Edit => {
  const replacement = wrongs[random(wrongs.length)] ?? null
  switch (random(4)) {
    case 0:
      return () => "removed"
    case 1:
      return (value) => ({
        replaced: typeof value === "object" && value !== null && !isArray(value)
          ? { ...value, unknown_field: replacement }
          : replacement
      })
    case 2:
      return (value) => ({ replaced: typeof value === "string" ? `${value}\n` : replacement })
    default:
      return () => ({ replaced: replacement })
  }
}

/** Returns `count` copies of a value, each with one damage at a random place. */
export const mutations = (value: unknown, seed: string, count: number): ReadonlyArray<unknown> => {
  const random = randomOf(seed)
  // The caller gives what JSON.parse returned.
  const json = value as Json
  const paths = pathsOf(json)
  return Array.from({ length: count }, () => edit(json, paths[random(paths.length)] ?? [], edits(random)))
}
