import { defineConfig } from "vitest/config"

/** Workspace packages resolve to their sources, so tests run without a build. */
const conditions = ["turnpike-source", "module", "node", "import", "default"]

/** The real CLIs, installed in test/real, against the scripted model server: `npm run test:real`. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["test/real/**/*.real.test.ts"],
    exclude: ["**/node_modules/**"],
    environment: "node",
    // One CLI takes a core and 200 MB; side by side they would only wait for each other.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000
  }
})
