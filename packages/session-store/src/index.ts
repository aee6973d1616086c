export * as PgSessionStore from "./PgSessionStore.ts"
export * as SqlDatabase from "./SqlDatabase.ts"
export * as SqlSessionStore from "./SqlSessionStore.ts"
export * as SqliteSessionStore from "./SqliteSessionStore.ts"
