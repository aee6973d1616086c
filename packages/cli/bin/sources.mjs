/**
 * Runs a TypeScript file of the workspace in this process, with every package resolved to its sources.
 *
 * Done with resolution hooks and not with a second process: a launcher that stands between a
 * supervisor and the process that owns agents would have to pass on signals it cannot catch.
 * Programs started with `process.execArgv` inherit the same condition.
 */
import { registerHooks } from "node:module"

const condition = "turnpike-source"

/** Resolves with the module's namespace once it has been evaluated. */
export const run = (file) => {
  const isDeno = process.versions.deno !== undefined
  if (!isDeno && !process.execArgv.some((argument) => argument.includes(condition))) {
    registerHooks({
      resolve: (specifier, context, next) =>
        next(specifier, { ...context, conditions: [...context.conditions, condition] })
    })
    process.execArgv.push(`--conditions=${condition}`)
  }
  return import(file.href)
}
