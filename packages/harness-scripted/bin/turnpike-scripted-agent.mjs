#!/usr/bin/env node
/**
 * Starts the scripted agent: the build of an installed package, and in a clone
 * the sources, so that an edit is never answered by yesterday's build.
 */
import fs from "node:fs"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (process.versions.deno === undefined && (major < 22 || (major === 22 && minor < 19))) {
  console.error(`turnpike-scripted-agent: Node ${process.versions.node} (${process.execPath}) is too old: need >= 22.19`)
  process.exit(2)
}
const source = new URL("../src/bin/agent.ts", import.meta.url)
const isClone = fs.existsSync(new URL("../../../pnpm-workspace.yaml", import.meta.url))
await import(isClone ? source.href : new URL("../dist/bin/agent.js", import.meta.url).href)
