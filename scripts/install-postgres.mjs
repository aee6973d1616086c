/**
 * Installs Debian's PostgreSQL for the slow suite, which starts a server of its own from it.
 *
 * The package would begin a server for the whole machine; it is told not to. Prints where the
 * programs are.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { BootstrapError, main } from "./bootstrap.mjs"

const installed = "/usr/lib/postgresql"
const settings = "/etc/postgresql-common"

const found = () => {
  const versions = fs.existsSync(installed) ? fs.readdirSync(installed).filter((name) => fs.existsSync(path.join(installed, name, "bin/initdb"))) : []
  return versions.sort((one, other) => Number(other) - Number(one)).map((name) => path.join(installed, name, "bin"))[0]
}

const apt = (...args) => {
  const ran = spawnSync("apt-get", ["-q", ...args], { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, stdio: ["ignore", 2, 2] })
  if (ran.error !== undefined) throw new BootstrapError(`apt-get could not be started (${ran.error.message}): install PostgreSQL by hand, so that ${installed}/VERSION/bin/initdb is there.`)
  return ran.status
}

await main(async () => {
  if (found() === undefined) {
    if (!fs.existsSync(settings)) {
      try {
        fs.mkdirSync(settings, { recursive: true })
        fs.writeFileSync(path.join(settings, "createcluster.conf"), "create_main_cluster = false\nstart_conf = manual\n")
      } catch (cause) {
        throw new BootstrapError(`${settings} cannot be written (${cause.message}): PostgreSQL is installed as root, or by hand.`)
      }
    }
    apt("update")
    apt("-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "install", "postgresql")
    if (found() === undefined) throw new BootstrapError("PostgreSQL is still missing: what apt-get said is above.")
  }
  process.stdout.write(`${found()}\n`)
})
