/**
 * Decodes strictly and explains refusals in the contract's own words: where,
 * what was expected, and what kind of thing was there instead. Values are not
 * repeated, because they may be secrets; only tags, which name a type, are.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"

/** One reason why an input was refused. */
export interface Fault {
  /** Names and positions from the root, such as `tools.allow[0]`; empty for the root itself. */
  readonly path: string
  /** What was expected there, as a sentence without its full stop. */
  readonly message: string
}

/**
 * How deep JSON may be nested. The decoder needs a bound, since it would
 * overflow the stack; this one is within what other languages' parsers take
 * (128 in Rust's serde_json, about 1000 in Python's json).
 */
export const maxDepth = 100

/** Returns whether arrays and objects are nested deeper than `limit`. Needs no stack. */
export const isDeeperThan = (value: unknown, limit: number): boolean => {
  // A set, so that an object that is reached in many ways is looked at once a level.
  let level = new Set<unknown>([value])
  for (let depth = 0; level.size > 0; depth++) {
    const next = new Set<unknown>()
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue
      if (depth === limit) return true
      for (const child of Object.values(item)) {
        if (typeof child === "object" && child !== null) next.add(child)
      }
    }
    level = next
  }
  return false
}

type Path = ReadonlyArray<PropertyKey>

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/u

const bound = (text: string, length: number) => text.length <= length ? text : `${text.slice(0, length)}…`

const showPath = (path: Path): string =>
  path.reduce<string>((shown, key) => {
    if (typeof key === "number") return `${shown}[${key}]`
    const name = String(key)
    if (!identifier.test(name)) return `${shown}[${JSON.stringify(bound(name, 60))}]`
    return shown === "" ? name : `${shown}.${name}`
  }, "")

const at = (input: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Readonly<Record<PropertyKey, unknown>>)[key]
        : undefined,
    input
  )

const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  switch (typeof value) {
    case "string":
      return "a string"
    case "number":
      return "a number"
    case "boolean":
      return "a boolean"
    case "object":
      return "an object"
    default:
      return "nothing"
  }
}

const list = (words: ReadonlyArray<string>): string => {
  if (words.length <= 1) return words.join("")
  return words.length <= 20
    ? `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`
    : `${words.slice(0, 3).join(", ")} or another of the ${words.length} that the schema lists`
}

const names = (ast: SchemaAST.Objects): ReadonlyArray<string> => ast.propertySignatures.map(({ name }) => String(name))

const literalOf = (ast: SchemaAST.AST | undefined): string | undefined =>
  ast?._tag === "Literal" ? JSON.stringify(ast.literal) : undefined

const fieldOf = (ast: SchemaAST.AST, field: string): SchemaAST.AST | undefined =>
  ast._tag === "Objects" ? ast.propertySignatures.find(({ name }) => name === field)?.type : undefined

/** The field that tells a union's members apart, with its values in the members' order. */
const tagsOf = (ast: SchemaAST.Union): { readonly field: string; readonly values: ReadonlyArray<string> } | undefined => {
  for (const field of ["type", "kind"]) {
    const values = ast.types.map((member) => literalOf(fieldOf(member, field)))
    if (values.length > 1 && values.every((value) => value !== undefined)) return { field, values }
  }
  return undefined
}

/** What a schema takes, as a noun. */
const describe = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "String":
      return "a string"
    case "Number":
      return "a number"
    case "Boolean":
      return "a boolean"
    case "Null":
      return "null"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Arrays":
      return "an array"
    case "Objects":
      return "an object"
    case "Union":
      return list([...new Set(ast.types.map(describe))])
    default:
      return "JSON"
  }
}

const literalsOf = (ast: SchemaAST.AST): ReadonlyArray<string> | undefined => {
  if (ast._tag === "Literal") return [JSON.stringify(ast.literal)]
  if (ast._tag !== "Union") return undefined
  const literals = ast.types.map(literalOf)
  return literals.every((literal) => literal !== undefined) ? literals : undefined
}

const mismatch = (ast: SchemaAST.AST, input: unknown): string => {
  const literals = literalsOf(ast)
  const kind = kindOf(input)
  return literals === undefined
    ? `Expected ${describe(ast)}, got ${kind}`
    : `Expected ${list(literals)}, got ${kind.replace(/^an? /u, "another ")}`
}

const explainUnion = (ast: SchemaAST.Union, input: unknown): { readonly path: Path; readonly message: string } => {
  const tags = tagsOf(ast)
  if (tags !== undefined && typeof input === "object" && input !== null && !Array.isArray(input)) {
    const tag = at(input, [tags.field])
    const got = typeof tag === "string" ? JSON.stringify(bound(tag, 60)) : kindOf(tag)
    return { path: [tags.field], message: `Expected ${list(tags.values)}, got ${got}` }
  }
  return { path: [], message: mismatch(ast, input) }
}

const messageOf = (annotations: Readonly<Record<string, unknown>> | undefined): string | undefined =>
  typeof annotations?.["message"] === "string" ? annotations["message"] : undefined

const expectedBy = (check: SchemaAST.Check<unknown>): string =>
  typeof check.annotations?.["expected"] === "string" ? check.annotations["expected"] : "another value"

const explain = (root: unknown, issue: SchemaIssue.Issue): ReadonlyArray<Fault> => {
  const fault = (path: Path, message: string): Fault => ({ path: showPath(path), message })
  const walk = (issue: SchemaIssue.Issue, path: Path, filter: SchemaIssue.Filter | undefined): ReadonlyArray<Fault> => {
    switch (issue._tag) {
      case "Pointer":
        return walk(issue.issue, [...path, ...issue.path], filter)
      case "Encoding":
        return walk(issue.issue, path, filter)
      case "Filter":
        return walk(issue.issue, path, issue)
      case "Composite":
        return issue.issues.flatMap((child) => walk(child, path, filter))
      case "AnyOf": {
        const [first, ...others] = issue.issues
        if (first !== undefined && others.length === 0) return walk(first, path, undefined)
        if (first === undefined) {
          const { message, path: inner } = explainUnion(issue.ast, at(root, path))
          return [fault([...path, ...inner], message)]
        }
        const meant = issue.issues
          .map((child) => walk(child, path, undefined))
          // A member that refuses the tag is not the one that was meant.
          .filter((faults) => faults.every((fault) => fault.path !== showPath([...path, "type"])))
        if (meant.length === 1) return meant[0]!
        const forms = issue.ast.types.map((member) =>
          member._tag === "Objects" ? `{ ${names(member).join(", ")} }` : describe(member)
        )
        return [fault(path, `Expected ${list(forms)}`)]
      }
      case "OneOf":
        return [fault(path, "Expected exactly one of the forms")]
      case "MissingKey":
        return [fault(path, typeof issue.annotations?.["messageMissingKey"] === "string" ? issue.annotations["messageMissingKey"] : "Missing field")]
      case "UnexpectedKey": {
        if (issue.ast._tag !== "Objects") return [fault(path, "Unknown field")]
        const key = issue.ast.indexSignatures[0]?.parameter.checks?.[0]
        if (key !== undefined) return [fault(path, `Expected ${expectedBy(key)}`)]
        return [fault(path, `Unknown field; the fields are ${names(issue.ast).join(", ")}`)]
      }
      case "InvalidType":
        return [fault(path, mismatch(issue.ast, at(root, path)))]
      case "InvalidValue": {
        const own = messageOf(issue.annotations)
        return [fault(path, own ?? `Expected ${filter === undefined ? "another value" : expectedBy(filter.filter)}`)]
      }
      case "Forbidden":
        return [fault(path, "Forbidden")]
    }
  }
  return walk(issue, [], undefined)
}

/** Says all faults in one line. */
export const format = (faults: ReadonlyArray<Fault>): string =>
  faults.map(({ message, path }) => path === "" ? message : `${path}: ${message}`).join("; ")

/** Makes a decoder that refuses unknown fields and unknown tags. Build it once for each schema. */
export const strictDecoder = <A>(
  schema: Schema.Codec<A, unknown>
): (input: unknown) => Result.Result<A, ReadonlyArray<Fault>> => {
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error", errors: "all" })
  return (input) =>
    isDeeperThan(input, maxDepth)
      ? Result.fail([{ path: "", message: `Expected JSON nested at most ${maxDepth} levels deep` }])
      : Result.mapError(decode(input), (error) => explain(input, error.issue))
}
