/**
 * The code of a Markdown document, with what its author says about how it is tried.
 *
 * The word after the language decides. `ts` is type-checked, `ts run` is run as well. `sh` is run;
 * `sh exit=2` has to end with that code; `sh install` needs the network and is checked by name
 * only; `sh real` needs somebody's agent and a key. `json` and `jsonl` have to parse. `text` is for
 * people. `of=FILE`, after `ts`, `jsonl` or `text`, marks an excerpt: whole lines that follow each
 * other in that file of the repository, whose tests are the block's. Anything else is a mistake:
 * nobody would try it.
 */
export interface CodeBlock {
  readonly document: string
  /** The line of the opening fence, from 1. */
  readonly line: number
  readonly language: string
  readonly marks: ReadonlyArray<string>
  readonly code: string
}

export const codeBlocks = (document: string, text: string): ReadonlyArray<CodeBlock> => {
  const blocks: Array<CodeBlock> = []
  let open: { fence: string; line: number; info: string; code: Array<string>; indent: number } | undefined
  for (const [index, line] of text.split("\n").entries()) {
    if (open === undefined) {
      const opening = /^(\s*)(`{3,}|~{3,})\s*(.*?)\s*$/.exec(line)
      if (opening !== null) open = { fence: opening[2] ?? "", line: index + 1, info: opening[3] ?? "", code: [], indent: opening[1]?.length ?? 0 }
    } else if (line.trim() === open.fence) {
      const [language = "", ...marks] = open.info.split(/\s+/)
      blocks.push({ document, line: open.line, language, marks, code: `${open.code.join("\n")}\n` })
      open = undefined
    } else {
      open.code.push(line.slice(Math.min(open.indent, line.length - line.trimStart().length)))
    }
  }
  if (open !== undefined) throw new Error(`${document}:${open.line} opens a code block that never closes`)
  return blocks
}

/** What is wrong with the fence itself, or nothing. */
export const fenceProblem = (block: CodeBlock): string | undefined => {
  const where = `${block.document}:${block.line}`
  const known: Readonly<Record<string, RegExp>> = { ts: /^(run|of=\S+)$/, sh: /^(exit=\d+|install|real)$/, json: /^$/, jsonl: /^of=\S+$/, text: /^of=\S+$/ }
  const marks = known[block.language]
  if (marks === undefined) return `${where}: nothing tries a block of "${block.language}"; use ts, sh, json, jsonl or text`
  const strange = block.marks.find((mark) => !marks.test(mark))
  return strange === undefined ? undefined : `${where}: ${block.language} knows no mark "${strange}"`
}

/** The file that a block is an excerpt of. */
export const excerptOf = (block: CodeBlock): string | undefined => block.marks.find((mark) => mark.startsWith("of="))?.slice("of=".length)

/** What is wrong with an excerpt, or nothing; `text` is the file's, absent where there is no such file. */
export const excerptProblem = (block: CodeBlock, text: string | undefined): string | undefined => {
  const where = `${block.document}:${block.line}`
  if (text === undefined) return `${where}: there is no file ${excerptOf(block)}`
  return `\n${text}`.includes(`\n${block.code}`) ? undefined : `${where}: these lines are not in ${excerptOf(block)} as they stand here`
}

/** The relative links of a document, without their anchors. */
export const relativeLinks = (text: string): ReadonlyArray<string> =>
  [...text.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").replace(/`[^`\n]*`/g, "").matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)]
    .map((match) => (match[1] ?? "").split("#")[0] ?? "")
    .filter((target) => target !== "" && !/^[a-z]+:/i.test(target))
