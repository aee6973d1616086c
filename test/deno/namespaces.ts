/** Prints what each package exports, as one JSON object: run by other runtimes than the one under test. */
const folders = process.argv.slice(2)
const entries = await Promise.all(folders.map(async (folder) => [folder, Object.keys(await import(`@turnpike/${folder}`))] as const))
console.log(JSON.stringify(Object.fromEntries(entries)))
