// Makes raw system calls from inside a child and prints, for each, `ok` or the error's number.
// Bun has `bun:ffi` only while its compiler is on, so this also shows that no limit turned that off.
import { dlopen, read } from "bun:ffi"
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { execFileSync } from "node:child_process"
const { parent, sibling, secret, outside, workspace, port, calls } = JSON.parse(process.argv[2])
const six = ["i64", "i64", "i64", "i64", "i64", "i64", "i64"]
const libc = dlopen("libc.so.6", { syscall: { args: six, returns: "i64" }, __errno_location: { args: [], returns: "ptr" } })
const call = (number, ...rest) => {
  const args = [number, ...rest, 0, 0, 0, 0, 0, 0].slice(0, 7).map(BigInt)
  const result = libc.symbols.syscall(...args)
  return result >= 0n ? "ok" : `errno ${read.i32(libc.symbols.__errno_location(), 0)}`
}
const attempt = async (name, act) => {
  let said
  try { said = (await act()) ?? "ok" } catch (error) { said = error.code ?? error.message }
  console.log(`${name}: ${said}`)
}
const quiet = { stdio: ["ignore", "ignore", "ignore"] }
const succeeds = (...command) => { try { execFileSync(command[0], command.slice(1), quiet); return "ok" } catch { return "fails" } }

await attempt("read a key", () => void readFileSync(secret))
await attempt("read a key by a shell", () => succeeds("/bin/cat", secret))
await attempt("read /etc/shadow", () => void readFileSync("/etc/shadow"))
for (const owner of [["parent", parent], ["sibling", sibling]]) {
  const [name, pid] = owner
  await attempt(`read environ of ${name}`, () => void readFileSync(`/proc/${pid}/environ`))
  await attempt(`read memory of ${name}`, () => void readFileSync(`/proc/${pid}/maps`))
  await attempt(`look through the root of ${name}`, () => void readdirSync(`/proc/${pid}/root/`))
  await attempt(`trace ${name}`, () => call(calls.ptrace, 16, pid))
  await attempt(`signal ${name}`, () => call(calls.kill, pid, 0))
}
await attempt("write outside", () => writeFileSync(outside, "x"))
await attempt("write a system setting", () => writeFileSync("/proc/sys/kernel/core_pattern", "x"))
await attempt("write /usr", () => writeFileSync("/usr/beeuni-attack", "x"))
await attempt("unshare", () => call(calls.unshare, 0x10000000))
await attempt("unshare by a program", () => succeeds("/usr/bin/unshare", "-r", "true"))
await attempt("clone a user namespace", () => call(calls.clone, 0x10000000 | 17))
await attempt("mount", () => call(calls.mount, 0, 0, 0, 0, 0))
await attempt("io_uring", () => call(calls.io_uring_setup, 1, 0))
await attempt("packet socket", () => call(calls.socket, 17, 3, 0))
await attempt("leave the session", () => call(calls.setsid))
await attempt("session unchanged", () => readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ")[3] === String(process.pid) ? "ok" : "changed")
const status = readFileSync("/proc/self/status", "utf8")
for (const line of ["NoNewPrivs", "CapEff", "CapPrm", "CapInh", "CapAmb"]) await attempt(line, () => status.match(new RegExp(`^${line}:\\s*(.*)$`, "m"))[1])

await attempt("write the workspace", () => writeFileSync(`${workspace}/file`, "x"))
await attempt("run a shell", () => succeeds("/bin/sh", "-c", "ls /usr | head -1 >/dev/null && echo hi >" + workspace + "/hi && rm " + workspace + "/hi"))
await attempt("run git", () => succeeds("git", "init", "-q", `${workspace}/repository`))
await attempt("run with a time limit", () => succeeds("timeout", "5", "true"))
await attempt("JIT", () => { let sum = 0; for (let n = 0; n < 3e6; n++) sum += n % 7; return sum > 0 ? "ok" : "wrong" })
await attempt("worker", () => new Promise((done, fail) => { const worker = new Worker(URL.createObjectURL(new Blob(["postMessage('ok')"]))); worker.onmessage = (event) => { done(event.data); worker.terminate() }; worker.onerror = fail }))
await attempt("detached child", () => new Promise(async (done) => { const { spawn } = await import("node:child_process"); spawn("true", { detached: true }).on("exit", (code) => done(code === 0 ? "ok" : "fails")).on("error", () => done("fails")) }))
await attempt("name lookup", async () => { const { lookup } = await import("node:dns/promises"); await lookup("localhost") })
await attempt("fetch loopback", async () => (await fetch(`http://127.0.0.1:${port}/`)).status === 204 ? "ok" : "wrong")
