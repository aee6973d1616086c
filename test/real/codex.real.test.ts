/** The verdict table on the real Codex, through the turnpike binary. */
import { rows } from "./support/codexVerdicts.ts"
import { verdictSuite } from "./support/realFacts.ts"

verdictSuite("codex", "Codex", rows)
