export * as Scenario from "./Scenario.ts"
export * as ScenarioLanguage from "./ScenarioLanguage.ts"
export * as ScriptedHarness from "./ScriptedHarness.ts"
export * as ScriptedWire from "./ScriptedWire.ts"
