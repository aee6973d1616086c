/**
 * The floors, by source edge: one rule a floor, no cycles, internals stay home.
 *
 * `scripts/layers.mjs` runs this and compares how many modules were cruised with how many sources
 * there are, because a dependency-cruiser that cannot read TypeScript is green on none.
 */
const floors = [
  ["contract"],
  ["kernel", "process"],
  ["harness"],
  [
    "harness-claude", "harness-codex", "harness-copilot", "harness-acp", "harness-scripted",
    "agent", "channel-terminal", "channel-http", "channel-acp", "channel-signal",
    "session-store", "workspace", "testkit"
  ],
  ["cli"]
]

const sourcesOf = (packages) => `^packages/(${packages.join("|")})/(src|bin)/`

/** On every floor: nothing from the floors above, and nothing from another package of the same floor. */
const floorRules = floors.map((packages, floor) => ({
  name: `floor-${floor}-depends-on-lower-floors-only`,
  severity: "error",
  from: { path: `^packages/(${packages.join("|")})/(?:src|bin)/` },
  to: {
    path: sourcesOf(floors.slice(floor).flat()),
    pathNot: "^packages/$1/"
  }
}))

export default {
  forbidden: [
    ...floorRules,
    {
      name: "no-cycles",
      comment: "Types count too: a cycle of types is still two files that cannot be read one after the other.",
      severity: "error",
      from: {},
      to: { circular: true }
    },
    {
      name: "internals-stay-home",
      severity: "error",
      from: { path: "^packages/([^/]+)/" },
      to: { path: "/src/.*internal/", pathNot: "^packages/$1/" }
    },
    {
      name: "no-runtime-modules-in-the-core",
      severity: "error",
      from: { path: "^packages/(contract|kernel)/src/" },
      to: { dependencyTypes: ["core"] }
    },
    {
      name: "testkit-is-for-tests",
      severity: "error",
      from: { path: "^packages/(?!testkit/)[^/]+/(?:src|bin)/" },
      to: { path: "^packages/testkit/" }
    },
    {
      name: "sources-import-no-tests",
      severity: "error",
      from: { path: "^packages/[^/]+/(?:src|bin)/" },
      to: { path: "(^|/)(test|examples|scripts)/" , pathNot: "node_modules" }
    },
    {
      name: "everything-resolves",
      severity: "error",
      from: { path: "^packages/" },
      to: { couldNotResolve: true }
    }
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^packages/[^/]+/dist/" },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["turnpike-source", "types", "node", "import", "default"],
      extensions: [".ts", ".mjs", ".js", ".json", ".d.ts"]
    }
  }
}
