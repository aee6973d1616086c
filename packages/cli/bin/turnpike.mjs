#!/usr/bin/env node
/**
 * Starts the turnpike command on whatever Node it is given.
 *
 * The first lines are written so that any Node that knows ES modules can read them: an old one has
 * to get as far as saying that it is old. An installed package runs its bundle. A clone runs the
 * bundle while it is at least as new as every source, and the sources otherwise, so that an edit is
 * never answered by yesterday's build.
 */
import fs from "fs"
import url from "url"

var found = process.versions.node.split(".").map(Number)
if (process.versions.deno === undefined && (found[0] < 22 || (found[0] === 22 && found[1] < 19))) {
  console.error(
    "turnpike: Node " + process.versions.node + " (" + process.execPath + ") is too old: need >= 22.19. "
      + "Install a newer Node, or run it from a clone with `npm start`, which brings one."
  )
  process.exit(1)
}

var cli = url.fileURLToPath(new URL("..", import.meta.url))
var bundle = cli + "dist/bundle/bin.js"
var isClone = fs.existsSync(cli + "../../pnpm-workspace.yaml")

var isNewer = function(directory, time) {
  return fs.readdirSync(directory, { withFileTypes: true }).some(function(entry) {
    var file = directory + "/" + entry.name
    return entry.isDirectory() ? isNewer(file, time) : fs.statSync(file).mtimeMs > time
  })
}

var isCurrent = function(time) {
  return !fs.readdirSync(cli + "..").some(function(name) {
    var sources = cli + "../" + name + "/src"
    return fs.existsSync(sources) && isNewer(sources, time)
  })
}

var built = fs.statSync(bundle, { throwIfNoEntry: false })
if (built !== undefined && (!isClone || isCurrent(built.mtimeMs))) {
  import(url.pathToFileURL(bundle).href)
} else if (isClone) {
  import("./sources.mjs").then(function(sources) {
    return sources.run(new URL("../src/bin.ts", import.meta.url))
  })
} else {
  console.error(
    "turnpike: this installation has no " + bundle + "; it is incomplete. "
      + "Install @turnpike/cli again, or run `npm run build` in a clone."
  )
  process.exit(1)
}
