import { defineConfig } from "vitest/config"

/** Workspace packages resolve to their sources, so tests run without a build. */
const conditions = ["turnpike-source", "module", "node", "import", "default"]

/** The fast suites: everything that needs neither minutes nor a foreign program. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**", "**/*.slow.test.ts", "test/real/**", "test/packaging/**", "test/deno/**"],
    globalSetup: ["packages/cli/test/support/bundle.ts"],
    environment: "node"
  }
})
