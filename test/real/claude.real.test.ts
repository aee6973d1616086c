/** The verdict table on the real Claude Code, through the turnpike binary. */
import { rows } from "./support/claudeVerdicts.ts"
import { verdictSuite } from "./support/realFacts.ts"

verdictSuite("claude", "Claude Code", rows)
