import { defineConfig } from "vitest/config"

/** Workspace packages resolve to their sources, so tests run without a build. */
const conditions = ["turnpike-source", "module", "node", "import", "default"]

/** The suites that take minutes: every containment through every scenario, as root and as an ordinary user, floods, kill loops, what the documents tell to type. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.slow.test.ts", "test/**/*.slow.test.ts"],
    globalSetup: ["packages/cli/test/support/bundle.ts"],
    exclude: ["**/node_modules/**", "**/dist/**", "test/real/**", "test/packaging/**", "test/deno/**"],
    environment: "node",
    // They count the machine's processes and measure memory: one at a time.
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})
