// Makes raw system calls from inside a child and prints, for each, `ok` or the error's number.
// Bun has `bun:ffi` only while its compiler is on, so this also shows that no limit turned that off.
import { dlopen, ptr, read } from "bun:ffi"
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { execFileSync } from "node:child_process"
const { parent, sibling, secret, outside, workspace, port, calls, refused, absent } = JSON.parse(process.argv[2])
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
// What one process may do to another, special modes, and memory that is in no process.
const wrong = []
const expect = (name, expected, said) => { if (said !== expected) wrong.push(`${name} ${said}`) }
const kept = []
const pointer = (bytes) => { kept.push(bytes); return ptr(bytes) }
const [room, zeroes] = [pointer(new Uint8Array(64)), pointer(new Uint8Array(64))]
const path = (text) => pointer(Buffer.from(text + "\0"))
for (const [name, pid] of [["parent", parent], ["sibling", sibling]]) {
  expect(`prlimit64 ${name}`, "errno 1", call(calls.prlimit64, pid, 0, room, 0))
  expect(`setpriority ${name}`, "errno 1", call(calls.setpriority, 0, pid, 5))
  expect(`setpriority group ${name}`, "errno 1", call(calls.setpriority, 1, pid, 5))
  expect(`ioprio_set ${name}`, "errno 1", call(calls.ioprio_set, 1, pid, 0x4007))
  for (const how of ["sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "move_pages", "migrate_pages"])
    expect(`${how} ${name}`, "errno 1", call(calls[how], pid, 8, room, room, room, 0))
  const handle = Number(libc.symbols.syscall(...[calls.pidfd_open, pid, 0, 0, 0, 0, 0].map(BigInt)))
  if (handle < 0) wrong.push(`no handle of ${name}`)
  expect(`pidfd_send_signal ${name}`, "errno 1", call(calls.pidfd_send_signal, handle, 0, 0, 0))
}
expect("setpriority user", "errno 1", call(calls.setpriority, 2, 0, 5))
expect("ioprio_set user", "errno 1", call(calls.ioprio_set, 3, 0, 0x4007))
expect("prlimit64 itself", "ok", call(calls.prlimit64, 0, 4, zeroes, 0))
expect("setpriority itself", "ok", call(calls.setpriority, 0, 0, 1))
const file = `${workspace}/special`
writeFileSync(file, "x")
for (const mode of [0o4755, 0o2755, 0o2000]) {
  const check = (name, ...rest) => name in calls && expect(`${name} ${mode.toString(8)}`, "errno 1", call(calls[name], ...rest))
  check("chmod", path(file), mode)
  check("fchmod", 99, mode)
  check("fchmodat", -100, path(file), mode)
  check("fchmodat2", -100, path(file), mode, 0)
  check("creat", path(file + 1), mode)
  check("open", path(file + 2), 0o101, mode)
  check("openat", -100, path(file + 3), 0o101, mode)
  check("openat", -100, path(workspace), 0o20200001, mode)
  check("mknod", path(file + 4), 0o100000 | mode, 0)
  check("mknodat", -100, path(file + 5), 0o100000 | mode, 0)
}
for (const mode of [0o020600, 0o060600]) expect(`device ${mode.toString(8)}`, "errno 1", call(calls.mknodat, -100, path(file + 6), mode, 0))
expect("chmod 755", "ok", call(calls.fchmodat, -100, path(file), 0o755))
expect("mkdir 2755", "ok", call(calls.mkdirat, -100, path(file + process.pid), 0o2755))
for (const [name, number] of Object.entries(refused)) expect(name, "errno 1", call(number, 0, 4096, 0o1600, 0, 0, 0))
for (const [name, number] of Object.entries(absent)) expect(name, "errno 38", call(number, room, 0, room, 24))
await attempt("system calls", () => wrong.length === 0 ? "as expected" : wrong.join(", "))

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
await attempt("much data through a program", async () => {
  const much = new Uint8Array(1 << 22).fill(65)
  const waited = Bun.spawnSync(["/bin/cat"], { stdin: much }).stdout.length
  const streamed = (await new Response(Bun.spawn(["/bin/cat"], { stdin: new Blob([much]) }).stdout).bytes()).length
  return waited === much.length && streamed === much.length ? "ok" : `${waited} ${streamed}`
})
await attempt("JIT", () => { let sum = 0; for (let n = 0; n < 3e6; n++) sum += n % 7; return sum > 0 ? "ok" : "wrong" })
await attempt("worker", () => new Promise((done, fail) => { const worker = new Worker(URL.createObjectURL(new Blob(["postMessage('ok')"]))); worker.onmessage = (event) => { done(event.data); worker.terminate() }; worker.onerror = fail }))
await attempt("detached child", () => new Promise(async (done) => { const { spawn } = await import("node:child_process"); spawn("true", { detached: true }).on("exit", (code) => done(code === 0 ? "ok" : "fails")).on("error", () => done("fails")) }))
await attempt("name lookup", async () => { const { lookup } = await import("node:dns/promises"); await lookup("localhost") })
await attempt("fetch loopback", async () => (await fetch(`http://127.0.0.1:${port}/`)).status === 204 ? "ok" : "wrong")
