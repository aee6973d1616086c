/**
 * Loaded into a process before its own program: writes its memory down now and then, after a
 * collection of garbage, so that what is counted is what is still in use.
 *
 * One JSON object a line goes to the file that BENCH_MEMORY_FILE names, every BENCH_MEMORY_MS.
 */
const fs = require("node:fs")
const v8 = require("node:v8")
const vm = require("node:vm")

const file = process.env.BENCH_MEMORY_FILE
v8.setFlagsFromString("--expose-gc")
const gc = vm.runInNewContext("gc")

setInterval(() => {
  gc()
  const { arrayBuffers, external, heapUsed, rss } = process.memoryUsage()
  fs.appendFileSync(file, JSON.stringify({ at: Date.now(), heap_used: heapUsed, external, array_buffers: arrayBuffers, rss }) + "\n")
}, Number(process.env.BENCH_MEMORY_MS)).unref()
