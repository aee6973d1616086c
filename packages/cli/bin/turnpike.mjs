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

var required = [22, 19]
var found = process.versions.node.split(".").map(Number)
if (process.versions.deno === undefined && (found[0] < required[0] || (found[0] === required[0] && found[1] < required[1]))) {
  console.error(
    "turnpike: Node " + process.versions.node + " (" + process.execPath + ") is too old: need >= 22.19. "
      + "Install a newer Node, or run it from a clone with `npm start`, which brings one."
  )
  process.exit(1)
}

var here = function(path) {
  return new URL(path, import.meta.url)
}
var bundle = here("../dist/bundle/bin.js")
var source = here("../src/bin.ts")
var isClone = fs.existsSync(here("../../../pnpm-workspace.yaml"))

var newestSource = function() {
  var newest = 0
  fs.readdirSync(here("../../")).forEach(function(name) {
    var directory = here("../../" + name + "/src")
    if (!fs.existsSync(directory)) return
    fs.readdirSync(directory, { recursive: true }).forEach(function(file) {
      newest = Math.max(newest, fs.statSync(url.fileURLToPath(directory) + "/" + file).mtimeMs)
    })
  })
  return newest
}

var bundleTime = fs.existsSync(bundle) ? fs.statSync(bundle).mtimeMs : -1
if (bundleTime >= 0 && (!isClone || bundleTime >= newestSource())) {
  import(bundle.href)
} else if (isClone && fs.existsSync(source)) {
  import("./sources.mjs").then(function(sources) {
    return sources.run(source)
  })
} else {
  console.error(
    "turnpike: this installation has no " + url.fileURLToPath(bundle) + "; it is incomplete. "
      + "Install @turnpike/cli again, or run `npm run build` in a clone."
  )
  process.exit(1)
}
