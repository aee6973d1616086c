import { defineConfig } from "vitest/config"

/** Workspace packages resolve to their sources, so tests run without a build. */
const conditions = ["turnpike-source", "module", "node", "import", "default"]

const excluded = ["**/node_modules/**", "**/dist/**", "**/*.slow.test.ts", "test/real/**", "test/packaging/**", "test/deno/**"]

/** The fast suites: everything that needs neither minutes nor a foreign program. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    environment: "node",
    // Most tests wait for processes, so that as many run at a time as there are cores.
    maxWorkers: "100%",
    // Files of one worker share what they import: loading Effect anew for each of them costs more than their tests.
    isolate: false,
    // A bound for what hangs. A machine that is busy takes several times as long as an idle one.
    testTimeout: 20_000,
    globalSetup: ["packages/cli/test/support/bundle.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "processes",
          include: ["packages/process/test/**/*.test.ts"],
          exclude: excluded,
          // Before the others: what escapes here without a trace would be suspect to whoever closes a program at that moment.
          sequence: { groupOrder: 0 }
        }
      },
      {
        extends: true,
        test: {
          name: "fast",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...excluded, "packages/process/**"],
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})
