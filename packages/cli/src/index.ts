export * as DataDirectory from "./DataDirectory.ts"
export * as FileSessionBindings from "./FileSessionBindings.ts"
export * as HarnessRegistry from "./HarnessRegistry.ts"
export * as Refusal from "./Refusal.ts"
