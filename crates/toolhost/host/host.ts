// Runs one tool module and speaks with the daemon in frames on descriptor 3.
//
// `u32 length | u8 kind | u32 id | payload`, little-endian; kinds and payloads are those of
// `crates/protocol/src/host.rs`. stdout and stderr belong to the module and only reach the log.
//
// A module can replace any global. What the host needs after the import is therefore taken here, first, and
// methods are held as plain functions, so that a poisoned prototype cannot change an answer.
import { readFileSync, statSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'

export const Kind = {
  Load: 1, Call: 2, Env: 3, Abort: 4, Ping: 5,
  Ready: 64, Loaded: 65, LoadFailed: 66, Result: 67, Error: 68, Background: 69, Pong: 70,
} as const

/** The longest text of one answer in bytes: a frame holds 64 MiB. */
export const MAX_TEXT = 60 * 1024 * 1024
/** A module whose imports reach more files than this is loaded again at every reload. */
const MAX_FILES = 4096
/** Larger source files are not read. */
const MAX_SOURCE = 8 * 1024 * 1024
const MAX_FRAME = 64 * 1024 * 1024
/** Answers that come at the same time go out together, up to so many bytes. */
const BATCH = 64 * 1024
/** So many environments are kept; the daemon names one of the last of them. */
const ENVS = 16

const { stringify, parse } = JSON
const { apply } = Reflect
const { isArray } = Array
const { keys, defineProperty } = Object
const { byteLength, allocUnsafeSlow } = Buffer
const { Transpiler, resolveSync, CryptoHasher } = Bun
const Bytes = Uint8Array
const Controller = AbortController
const Failure = Error
const soon = queueMicrotask
const exit = process.reallyExit.bind(process) as (code: number) => never

// `call.bind(f)` is f with `this` as its first argument; invoking it looks nothing up.
const method = <T, A extends unknown[], R>(f: (this: T, ...args: A) => R) =>
  Function.prototype.call.bind(f) as unknown as (self: T, ...args: A) => R
const wellFormed = method(String.prototype.toWellFormed)
const trim = method(String.prototype.trim)
const slice = method(String.prototype.slice)
const replaceAll = method(String.prototype.replaceAll as (this: string, a: string, b: string) => string)
const matches = method(RegExp.prototype.test)
const push = method(Array.prototype.push as (this: unknown[], item: unknown) => number)
const copy = method(Uint8Array.prototype.set as (this: Uint8Array, from: Uint8Array, at: number) => void)
const part = method(Uint8Array.prototype.subarray as (this: Uint8Array, a: number, b: number) => Uint8Array)
type Calls = Map<number, AbortController>
const get = method(Map.prototype.get as (this: Calls, id: number) => AbortController | undefined)
const put = method(Map.prototype.set as (this: Calls, id: number, c: AbortController) => Calls)
const drop = method(Map.prototype.delete as (this: Calls, id: number) => boolean)
const fire = method(AbortController.prototype.abort)
const signalOf = method(Object.getOwnPropertyDescriptor(AbortController.prototype, 'signal')!.get as (this: AbortController) => AbortSignal)
const encoder = new TextEncoder()
const encodeInto = encoder.encodeInto.bind(encoder)
const decoder = new TextDecoder()
const decode = decoder.decode.bind(decoder) as (bytes: Uint8Array) => string

/** Replaces half surrogate pairs in every string of a JSON value, keys too. */
export function heal(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value)
  if (typeof value !== 'object' || value === null) return value
  if (isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = heal(value[i])
    return value
  }
  const healed: object = {}
  const names = keys(value)
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!
    // defineProperty, because assigning to `__proto__` would not make a key.
    const item = { value: heal((value as Record<string, unknown>)[name]), enumerable: true, configurable: true, writable: true }
    defineProperty(healed, wellFormed(name), item)
  }
  return healed
}

/** JSON text with no half surrogates; `undefined` where JSON has no text for the value. */
export function json(value: unknown, indent = 0): string | undefined {
  // Plain first: pretty-printing a cycle blocks for seconds before it fails.
  const plain = stringify(value) as string | undefined
  if (plain === undefined) return undefined
  if (plain.length > MAX_TEXT) throw new Failure(tooLong(plain.length))
  const broken = matches(/\\u[dD][89a-fA-F]/, plain)
  if (!broken && indent === 0) return plain
  // Indent what was just written, so that the value's own `toJSON` runs once.
  const again = parse(plain) as unknown
  return stringify(broken ? heal(again) : again, null, indent)
}

/** What the model reads of a result (M3). */
export function resultText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'function' || typeof value === 'symbol') throw new Failure(`the tool returned a ${typeof value}, which JSON cannot hold`)
  return json(value, 2) ?? ''
}

/** What the model reads of something thrown; never throws itself. */
export function errorText(error: unknown): string {
  try {
    if (typeof error === 'object' && error !== null) {
      const { message, name, errors } = error as { message?: unknown; name?: unknown; errors?: unknown }
      if (isArray(errors) && errors.length > 0 && isBuildMessage(errors[0])) return errorText(errors[0])
      if (typeof message === 'string' && message !== '') return message + place(error)
      if (typeof message === 'string' && typeof name === 'string' && name !== '') return name
      return json(error) ?? 'the tool threw an object that has no text'
    }
    return `${error as string}`
  } catch {
    return typeof error === 'symbol' ? 'the tool threw a symbol' : 'the tool threw something that cannot be read'
  }
}

function isBuildMessage(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (error as { name?: unknown }).name === 'BuildMessage'
}

/** ` (file:line:column)` of a syntax error. */
function place(error: object): string {
  if (!isBuildMessage(error)) return ''
  const { position } = error as { position?: { file?: string; line?: number; column?: number } | null }
  return position?.file ? ` (${position.file}:${position.line}:${position.column})` : ''
}

function tooLong(bytes: number): string {
  return `the result is too long: ${bytes} bytes, and at most ${MAX_TEXT} can be returned; write it to a file and return its path`
}

interface Tool {
  description: string
  parameters: string
  execute: Function
  self: unknown
}

/** Judges a module's default export (M1); throws a reason that names the field. */
export function toolOf(module: { default?: unknown }): Tool {
  let self = module.default as any
  const isObject = (value: unknown): boolean => (typeof value === 'object' && value !== null) || typeof value === 'function'
  if (self === undefined) throw new Failure('no default export: the module must `export default { description, parameters, execute }`')
  if (!isObject(self)) throw new Failure('the default export is not an object with description, parameters and execute')
  // `module.exports = { default: {…} }` arrives with one level more.
  if (self.description === undefined && self.execute === undefined && isObject(self.default)) self = self.default
  const description = self.description as unknown
  if (typeof description !== 'string' || trim(description) === '') throw new Failure('description is missing or is not a non-empty string')
  const parameters = self.parameters as unknown
  const wrong = "parameters is not a JSON Schema with type: 'object'"
  if (typeof parameters !== 'object' || parameters === null || isArray(parameters)) throw new Failure(wrong)
  const text = json(parameters)
  if (text === undefined || (parse(text) as { type?: unknown } | null)?.type !== 'object') throw new Failure(wrong)
  const execute = self.execute as unknown
  if (typeof execute !== 'function') throw new Failure('execute is missing or is not a function')
  return { description: wellFormed(description), parameters: text, execute, self }
}

interface LoadedFile {
  path: string
  /** Empty for a file that is not there, so that its appearance counts as a change. */
  sha256: string
}

const LOADERS: Record<string, 'ts' | 'tsx' | 'jsx'> = {
  '.ts': 'ts', '.mts': 'ts', '.cts': 'ts', '.tsx': 'tsx', '.js': 'jsx', '.mjs': 'jsx', '.cjs': 'jsx', '.jsx': 'jsx',
}

/** Hashes the module and every file of the checkout that it imports, without running any of them. */
export function filesOf(module: string, root: string): LoadedFile[] {
  const files: LoadedFile[] = []
  const seen = new Set<string>()
  const open = [module]
  while (open.length > 0) {
    const path = open.pop()!
    if (seen.has(path) || !path.startsWith(root + '/')) continue
    seen.add(path)
    if (files.length >= MAX_FILES) return [...files, { path: '', sha256: '' }]
    const source = read(path)
    files.push({ path, sha256: source === undefined ? '' : hash(source) })
    // These decide how imports of this folder resolve and how its files are read.
    for (let folder = dirname(path); folder.startsWith(root) && !seen.has(folder); folder = dirname(folder)) {
      seen.add(folder)
      for (const name of ['package.json', 'tsconfig.json', 'jsconfig.json']) {
        const file = join(folder, name)
        if (seen.has(file)) continue
        seen.add(file)
        const settings = read(file)
        files.push({ path: file, sha256: settings === undefined ? '' : hash(settings) })
      }
    }
    const loader = LOADERS[extname(path)]
    if (loader === undefined || source === undefined) continue
    for (const specifier of importsOf(source, loader)) {
      try {
        open.push(resolveSync(specifier, dirname(path)))
      } catch {
        // The import itself says what is missing, if it is reached at all.
      }
    }
  }
  return files
}

/** A regular file's bytes; a FIFO would block for ever and a device would never end. */
function read(path: string): Uint8Array | undefined {
  try {
    const stat = statSync(path)
    return stat.isFile() && stat.size <= MAX_SOURCE ? readFileSync(path) : undefined
  } catch {
    return undefined
  }
}

function hash(bytes: Uint8Array): string {
  return new CryptoHasher('sha256').update(bytes).digest('hex')
}

function importsOf(source: Uint8Array, loader: 'ts' | 'tsx' | 'jsx'): string[] {
  try {
    return new Transpiler({ loader }).scanImports(source).map((found) => found.path)
  } catch {
    return []
  }
}

/** Takes the daemon's own paths out of a text, so that a reason reads the same on every machine. */
export function withoutRoot(text: string, root: string): string {
  return replaceAll(replaceAll(replaceAll(text, `file://${root}/`, ''), `${root}/`, ''), root, '.')
}

/** Serves one connection. */
async function serve(): Promise<void> {
  let write: (bytes: Uint8Array) => number
  // Frames that the socket did not take yet, in order; `head` is the first that is not written.
  let queue: Uint8Array[] = []
  let head = 0
  // Frames that were not written yet because others may come right after them; they follow the queue.
  let batch: Uint8Array = new Bytes(BATCH)
  let filled = 0
  let promised = false
  let open = 0
  const calls: Calls = new Map()
  const envs: { number: number; vars: Record<string, string> }[] = []
  let env = 0
  let tool: Tool | undefined
  let name = 'tool'

  function flush(): void {
    promised = false
    if (filled > 0) {
      const n = head === queue.length ? write(part(batch, 0, filled)) : 0
      if (n < filled) {
        push(queue, part(batch, n > 0 ? n : 0, filled))
        batch = new Bytes(BATCH)
        filled = 0
        // The socket is full: it says when it is not.
        return
      }
      filled = 0
    }
    while (head < queue.length) {
      const bytes = queue[head]!
      const n = write(bytes)
      if (n < bytes.length) {
        if (n > 0) queue[head] = part(bytes, n, bytes.length)
        return
      }
      head++
    }
    queue = []
    head = 0
  }

  function send(kind: number, id: number, text: string): void {
    text = wellFormed(text)
    const size = 9 + byteLength(text)
    if (filled + size > BATCH) flush()
    if (size > BATCH) {
      const frame = allocUnsafeSlow(size)
      writeFrame(frame, 0, kind, id, text, size)
      push(queue, frame)
      if (queue.length === head + 1) flush()
      return
    }
    writeFrame(batch, filled, kind, id, text, size)
    filled += size
    // Other calls may be about to answer, but nothing waits behind more than what is due right now.
    if (open <= 1) flush()
    else if (!promised) {
      promised = true
      soon(flush)
    }
  }

  /** A result over the limit is an error; an error over it is cut. Counted before anything is copied. */
  function answer(kind: number, id: number, text: string): void {
    const bytes = text.length > MAX_TEXT ? text.length : byteLength(text)
    if (bytes <= MAX_TEXT) send(kind, id, text)
    else if (kind === Kind.Result) send(Kind.Error, id, tooLong(bytes))
    else send(kind, id, slice(text, 0, 1 << 20))
  }

  async function load(payload: string): Promise<void> {
    const order = parse(payload) as { name: string; path: string; root: string }
    name = order.name
    let files: LoadedFile[] = []
    try {
      files = filesOf(order.path, order.root)
      const loaded = toolOf((await import(order.path)) as { default?: unknown })
      tool = loaded
      const head = stringify({ description: loaded.description, files })
      // The schema's text goes in as it is: writing it a second time could only change it.
      send(Kind.Loaded, 0, `${slice(head, 0, head.length - 1)},"parameters":${loaded.parameters}}`)
    } catch (error) {
      const text = replaceAll(wellFormed(errorText(error)), ` imported from ${import.meta.path}`, '')
      const message = slice(withoutRoot(text, order.root), 0, 4096)
      send(Kind.LoadFailed, 0, stringify({ message, files }))
    }
  }

  async function call(id: number, payload: Uint8Array): Promise<void> {
    const control = new Controller()
    put(calls, id, control)
    open++
    try {
      const size = number(payload, 0)
      const meta = parse(decode(part(payload, 4, 4 + size))) as { sessionId: string; agent: string; directory: string; env: number }
      const text = decode(part(payload, 4 + size, payload.length))
      if (tool === undefined) throw new Failure(`${name} is not loaded`)
      let vars: Record<string, string> = {}
      for (let i = 0; i < envs.length; i++) if (envs[i]!.number === meta.env) vars = envs[i]!.vars
      const context = {
        sessionId: meta.sessionId,
        agent: meta.agent,
        directory: meta.directory,
        // A copy for each call: a module may write into it.
        env: { ...vars },
        signal: signalOf(control),
      }
      const value = await apply(tool.execute, tool.self, [text === '' ? {} : parse(text), context])
      answer(Kind.Result, id, resultText(value))
    } catch (error) {
      answer(Kind.Error, id, errorText(error))
    } finally {
      drop(calls, id)
      open--
    }
  }

  function frame(kind: number, id: number, payload: Uint8Array): void {
    // What runs next may not turn again.
    if (filled > 0) flush()
    switch (kind) {
      // The buffer is used again: what outlives this turn of the loop is copied or parsed now.
      case Kind.Call:
        return void call(id, payload)
      case Kind.Ping:
        return send(Kind.Pong, id, '')
      case Kind.Abort: {
        const control = get(calls, id)
        if (control) fire(control)
        return
      }
      case Kind.Env: {
        envs[env++ % ENVS] = parse(decode(payload)) as { number: number; vars: Record<string, string> }
        return
      }
      case Kind.Load:
        return void load(decode(payload))
      default:
        exit(70)
    }
  }

  let buffer = new Bytes(1 << 16)
  let start = 0
  let end = 0
  function data(bytes: Uint8Array): void {
    if (end + bytes.length > buffer.length) {
      const kept = end - start
      // A large frame gets its whole room at once.
      const due = kept >= 4 ? 4 + number(buffer, start) : 0
      if (due > MAX_FRAME + 4) exit(70)
      const most = kept + bytes.length
      const room = most > buffer.length || due > buffer.length ? new Bytes(due > most ? due + (1 << 16) : most * 2) : buffer
      copy(room, part(buffer, start, end), 0)
      buffer = room
      start = 0
      end = kept
    }
    copy(buffer, bytes, end)
    end += bytes.length
    while (end - start >= 9) {
      const length = number(buffer, start)
      if (length > MAX_FRAME || length < 5) exit(70)
      if (end - start < 4 + length) break
      const at = start
      start += 4 + length
      frame(buffer[at + 4]!, number(buffer, at + 5), part(buffer, at + 9, at + 4 + length))
    }
    if (start === end) {
      start = end = 0
      if (buffer.length > 2 << 20) buffer = new Bytes(1 << 16)
    }
  }

  const background = (error: unknown) => send(Kind.Background, 0, slice(errorText(error), 0, 4096))
  process.on('unhandledRejection', background)
  process.on('uncaughtException', background)
  process.on('exit', flush)

  const socket = await Bun.connect({
    // Bun takes an open descriptor here; its types do not know that yet.
    ...({ fd: 3 } as unknown as { unix: string }),
    socket: { data: (_, bytes) => data(bytes), drain: flush, close: () => exit(0), error: () => exit(70) },
  })
  write = socket.write.bind(socket) as (bytes: Uint8Array) => number
  send(Kind.Ready, 0, stringify({ bun: Bun.version }))
}

function writeFrame(out: Uint8Array, at: number, kind: number, id: number, text: string, size: number): void {
  const length = size - 4
  out[at] = length
  out[at + 1] = length >> 8
  out[at + 2] = length >> 16
  out[at + 3] = length >> 24
  out[at + 4] = kind
  out[at + 5] = id
  out[at + 6] = id >> 8
  out[at + 7] = id >> 16
  out[at + 8] = id >> 24
  encodeInto(text, part(out, at + 9, at + size))
}

function number(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
}

if (import.meta.main) await serve()
