import { defineConfig } from "vitest/config"

/** Turnpike under Deno. The suite itself runs on Node and starts the Deno that `scripts/install-deno.mjs` installed. */
export default defineConfig({
  test: {
    include: ["test/deno/**/*.test.ts"],
    environment: "node",
    testTimeout: 120_000,
    hookTimeout: 600_000
  }
})
