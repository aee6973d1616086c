export * as DataDirectory from "./DataDirectory.ts"
export * as HarnessRegistry from "./HarnessRegistry.ts"
export * as Refusal from "./Refusal.ts"
