/** The verdict table on the real Copilot, through the turnpike binary. */
import { rows } from "./support/copilotVerdicts.ts"
import { verdictSuite } from "./support/realFacts.ts"

verdictSuite("copilot", "Copilot", rows)
