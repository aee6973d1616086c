import { defineConfig } from "vitest/config"

/** Workspace packages resolve to their sources, so tests run without a build. */
const conditions = ["turnpike-source", "module", "node", "import", "default"]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/real/**", "**/dist/**"],
    environment: "node"
  }
})
