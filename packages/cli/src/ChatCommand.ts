import type { Given } from "./CommandLine.ts"
export const main = (_given: Given): Promise<number> => Promise.resolve(1)
