/** The facts that are right, where they differ by containment. Everything else is in the tests themselves. */
import type { Strategy } from "../../src/Containment.ts"
import type { Facts, HeavyScenarioName, ScenarioName } from "./scenarios.ts"

const held = ["bare", "daemon", "setsid"]

export const expectations = (strategy: Strategy): Record<ScenarioName, { readonly fact: string; readonly facts: Facts }> => {
  // Behind a namespace's shell a death by signal n is status 128 + n; see ProcessExit.
  const bySignal = (signal: string, number: number) => ({ code: strategy === "group" ? null : 128 + number, signal })
  return {
    exits: {
      fact: "passes exit codes and deaths by signal on",
      facts: { exits: [{ code: 0, signal: null }, { code: 7, signal: null }, bySignal("SIGTERM", 15), bySignal("SIGKILL", 9)] }
    },
    "both outputs": {
      fact: "reads both outputs at the same time and refuses what comes after the end of input and a second reader",
      facts: {
        lines: ["out naïve", "there"],
        errors: "err naïve\n",
        totalBytes: 11,
        exit: { code: 0, signal: null },
        afterEnd: "InputClosed",
        again: "OutputTaken"
      }
    },
    "the end of standard error": {
      fact: "keeps the end of standard error from a whole character on and counts all of it",
      facts: { held: 100, totalBytes: 9500, text: `üü\n${"üüüüüüüüü\n".repeat(5)}` }
    },
    "a ladder": {
      fact: "climbs a ladder only as far as it must",
      facts: {
        ended: [["SIGINT", 5, null], ["SIGTERM", 6, null], ["SIGKILL", bySignal("SIGKILL", 9).code, "SIGKILL"]],
        over: { endedBy: null, exit: { code: 0, signal: null } },
        signalledAfterwards: false
      }
    },
    "a signal to the group": {
      fact: "signals the program's whole group",
      facts: { sent: true, programGotIt: true, insideGroup: true }
    },
    escapes: {
      fact: "kills and lists what left the group, the session, its parent or its environment",
      facts: {
        seen: ["bare", "daemon", "plain", "setsid"],
        killed: held,
        survivors: [],
        suspects: [],
        exit: bySignal("SIGKILL", 9),
        alive: [],
        same: true
      }
    },
    "a child that ends when it is asked": {
      fact: "does not list what ended with its group on a gentler signal than KILL",
      facts: { exit: { code: 7, signal: null }, killed: [], alive: [] }
    },
    "the end of a scope": {
      fact: "leaves nothing when its scope ends, and tells afterwards what it killed",
      facts: { alive: [], killed: held }
    },
    "an interruption": {
      fact: "leaves nothing when its owner is interrupted, however early",
      facts: { alive: [] }
    },
    "a program that leaves its children": {
      fact: "sees a program's exit and its output's end while its children go on, and kills those on close",
      facts: { exit: { code: 3, signal: null }, lines: ["out"], descendants: ["left"], killed: ["left"], alive: [] }
    },
    "a grandchild that holds the output": {
      fact: "waits neither for exit nor for the output's end on a grandchild that holds the output",
      facts: { exit: { code: 0, signal: null }, lines: ["out"], outputHeld: true, killed: ["holder"], alive: [] }
    },
    "work that ends after the program": {
      fact: "reads on after the program's exit while its children write, to the output's end",
      facts: { exit: { code: 0, signal: null }, lines: ["out", "late"], outputHeld: false, killed: [] }
    },
    "input that is not read": {
      fact: "fails a write that nobody will read, and is not harmed by it",
      facts: { written: "InputClosed", exit: { code: 4, signal: null } }
    },
    "input that waits": {
      fact: "lets a writer wait for its reader",
      facts: { waiting: true, lines: ["4194304"], exit: { code: 0, signal: null } }
    },
    "a prompt of 2 MB": {
      fact: "passes 2 MB of input on",
      facts: { lines: ["2097152"], exit: { code: 0, signal: null } }
    },
    "bytes one by one": {
      fact: "reads lines that arrive byte by byte, with CR, NUL, U+2028, a byte order mark and broken characters in them",
      facts: {
        lines: [
          ["Text", "grüße 日本語 😀", true],
          ["Text", "\r", true],
          ["Text", "a\u2028b\u2029c\u0085d\0e\f\v", true],
          ["InvalidUtf8", [0xe4, 0x6c, 0x6f, 0x67], true],
          ["InvalidUtf8", [0xbb, 0xb6], true],
          ["Text", "", true],
          ["Text", "\ufeffbom", true],
          ["Text", "end", false]
        ]
      }
    },
    "a line over the bound": {
      fact: "tells of a line over the bound and reads on",
      facts: { lines: [["Text", "before"], ["Oversize", 3_000_000, true], ["Text", "after"]], exit: { code: 0, signal: null } }
    },
    "output that is not read": {
      fact: "stops a program whose output is not read",
      facts: { stopped: true, bounded: true }
    },
    "a turn": {
      fact: "kills what was born in a turn, but what is spared and what was there before",
      facts: { killed: ["born", "daemon", "stubborn"], survivors: [], left: ["before", "spared"], running: true, alive: [] }
    },
    "a containment that is killed from outside": {
      fact: "notices when the process it started is killed by others, and leaves nothing",
      facts: { signal: "SIGKILL", survivors: [], alive: [] }
    },
    orphans: {
      fact: "collects the dead of a namespace",
      facts: { lines: strategy === "group" ? "not ours to collect" : ["zombies 0"] }
    },
    "an escape without a trace": {
      fact: strategy === "group"
        ? "tells of a process that left no trace of whose it is"
        : "holds a process that left no trace of whose it is",
      facts: { told: ["gone"], truthful: true, held: strategy === "group" ? "not promised" : true, survivors: [] }
    },
    "work handed to a daemon": {
      fact: "does not reach work that was handed to another's daemon",
      facts: { left: ["elsewhere"], killed: [], survivors: [], suspects: [], alive: [] }
    },
    environment: {
      fact: "cleans the environment of agents' marks, keeps settings and adds its tag",
      facts: { set: "set", ours: "ours", removed: [], kept: "/a/home", tags: 1 }
    },
    refusals: {
      fact: "names program and remedy when nothing can be started",
      facts: {
        "not in PATH": "ProgramNotFound: there is no program no-such-program in PATH (…); install it or give its full path",
        "no such path": "ProgramNotFound: there is no program ./no-such-program; check the path",
        "a directory": "ProgramNotExecutable: DIR cannot be executed: it is a directory",
        "not executable": "ProgramNotExecutable: DIR/plain cannot be executed: it lacks the permission to execute (chmod +x)",
        "no interpreter":
          "ProgramNotExecutable: DIR/script cannot be executed: its first line asks for /no/such/interpreter, which does not exist; install that or correct the line",
        "no directory": "DirectoryUnusable: sh cannot run in DIR/nowhere: there is no such directory; create the directory or name another",
        "not a directory": "DirectoryUnusable: sh cannot run in DIR/plain: it is not a directory; create the directory or name another",
        "one long argument":
          "ArgumentsTooLong: the system refused N bytes of arguments and M of environment for sh; pass long text on standard input or in a file (one argument holds at most 128 KiB on Linux)",
        "a NUL": "InvalidCommand: the command \"sh\" is not valid: args[1] holds a NUL character",
        "a bad name": "InvalidCommand: the command \"sh\" is not valid: env[\"A=B\"] is not the name of a variable",
        "no bound": "InvalidCommand: the command \"sh\" is not valid: maxLineBytes is 0; it must be an integer from 1 to 268435456"
      }
    }
  }
}

export const heavyExpectations: Record<HeavyScenarioName, { readonly fact: string; readonly facts: Facts }> = {
  "300 MB to a slow reader": {
    fact: "gives 300 MB to a slow reader with its memory flat",
    facts: { count: 300_000, wrong: 0, memoryFlat: true, exit: { code: 0, signal: null } }
  },
  "a line of 200 MB": {
    fact: "tells of a line of 200 MB without holding it",
    facts: {
      lines: [["Text", "before"], ["Oversize", 200_000_000, 4096], ["Text", "after"]],
      memoryBounded: true,
      exit: { code: 0, signal: null }
    }
  },
  "a line of 30 MB": {
    fact: "reads a line of 30 MB whole",
    facts: { lines: [["Text", 30_000_000], ["Text", 5]] }
  },
  "two hundred in a row": {
    fact: "gives back every file descriptor of two hundred programs that ignore TERM",
    facts: { leaked: 0, alive: [] }
  }
}
