import { defineConfig } from "vitest/config"

/** What is published, as it is published: packed, installed into an empty project, imported and run. */
export default defineConfig({
  test: {
    include: ["test/packaging/**/*.test.ts"],
    environment: "node",
    testTimeout: 120_000,
    hookTimeout: 600_000
  }
})
