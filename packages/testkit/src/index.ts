export * as ModelReply from "./ModelReply.ts"
export * as ModelRequest from "./ModelRequest.ts"
export * as ModelScenario from "./ModelScenario.ts"
export * as ModelServer from "./ModelServer.ts"
