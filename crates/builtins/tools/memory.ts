// Keeps notes under memory/ in the checkout. Commands and return strings are those of Anthropic's `memory_20250818`
// tool, so models know them already. A refusal is a returned string: the model reads it and tries something else.
import {
  chmodSync, closeSync, constants, fsyncSync, fstatSync, lstatSync, mkdirSync, openSync, readFileSync, readSync,
  readdirSync, readlinkSync, renameSync, rmSync, unlinkSync, writeFileSync, type Stats,
} from 'node:fs'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

type Fields = Record<string, unknown>
type Context = { directory: string; signal: AbortSignal }
/** A path inside memory/: as the model wrote it, and where it is on disk. */
type Place = { shown: string; segments: string[]; disk: string }

const ROOT = 'memory'
const MAX_BYTES = 4 * 1024 * 1024
const MAX_LISTED = 2_000
/** Lines of context around a change in the answer to `str_replace`. */
const AROUND = 2
/** Only the writer that holds LOCK creates TEMPORARY, so what a killed writer leaves is replaced by the next one. */
const LOCK = '.memory.lock'
const TEMPORARY = '.memory.tmp'
const LOCK_WAIT_MS = 15_000
/** Writers hold the lock for milliseconds: one that is this old belongs to nobody, even if its process id is in use. */
const LOCK_STALE_MS = 60_000

export default {
  description:
    'Keep notes that outlive this conversation, as files under memory/. Commands: view (a folder or a file), create, ' +
    'str_replace, insert, delete, rename. Every path starts with memory, e.g. memory/notes.md.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
      path: { type: 'string', description: 'The file or folder, e.g. memory/notes.md (every command but rename)' },
      view_range: {
        type: 'array',
        items: { type: 'integer' },
        minItems: 2,
        maxItems: 2,
        description: 'For view: first and last line, -1 for the end',
      },
      file_text: { type: 'string', description: 'For create: the whole text' },
      old_str: { type: 'string', description: 'For str_replace: the text to replace; it must occur exactly once' },
      new_str: { type: 'string', description: 'For str_replace: what takes its place' },
      insert_line: { type: 'integer', description: 'For insert: the line to insert after, 0 for the beginning' },
      insert_text: { type: 'string', description: 'For insert: the text to insert' },
      old_path: { type: 'string', description: 'For rename: the path now' },
      new_path: { type: 'string', description: 'For rename: the path to be' },
    },
    required: ['command'],
  },

  async execute(args: Fields, context: Context): Promise<string> {
    try {
      switch (args.command) {
        case 'view': {
          return view(place(args, 'path', context), args.view_range)
        }
        case 'create': {
          const target = place(args, 'path', context)
          const text = required(args, 'file_text')
          return await locked(context, () => create(target, text))
        }
        case 'str_replace': {
          const target = place(args, 'path', context)
          const old = required(args, 'old_str')
          if (old === '') throw missing(args, 'old_str')
          const text = required(args, 'new_str')
          return await locked(context, () => replace(target, old, text))
        }
        case 'insert': {
          const target = place(args, 'path', context)
          if (args.insert_line === undefined || args.insert_line === null) throw missing(args, 'insert_line')
          const text = required(args, 'insert_text')
          return await locked(context, () => insert(target, args.insert_line, text))
        }
        case 'delete': {
          const target = place(args, 'path', context)
          return await locked(context, () => remove(target))
        }
        case 'rename': {
          const from = place(args, 'old_path', context)
          const to = place(args, 'new_path', context)
          return await locked(context, () => move(from, to))
        }
        default:
          return 'Error: unknown command'
      }
    } catch (error) {
      context.signal.throwIfAborted()
      if (error instanceof Refusal) return error.message
      throw error
    }
  },
}

// ---- The commands ----

function view(target: Place, range: unknown): string {
  const found = find(target)
  if (!found) {
    // Before the first note there is no folder yet, and looking must not make one.
    if (target.segments.length === 0) return listing(target, [`0B\t${ROOT}`])
    throw new Refusal(`The path ${target.shown} does not exist. Please provide a valid path.`)
  }
  if (found.isDirectory()) {
    const lines: string[] = []
    const size = measure(target.disk, [ROOT, ...target.segments].join('/'), 1, lines)
    return listing(target, [`${readable(size)}\t${[ROOT, ...target.segments].join('/')}`, ...lines])
  }
  const lines = split(read(target))
  const [first, last] = viewRange(range, lines.length)
  return `Here's the content of ${target.shown} with line numbers:\n${numbered(lines, first, last)}`
}

function create(target: Place, text: string): string {
  if (find(target)) throw new Refusal(`Error: File ${target.shown} already exists`)
  write(target, text)
  return `File created successfully at: ${target.shown}`
}

function replace(target: Place, old: string, text: string): string {
  const before = read(target, '. Please provide a valid path.')
  const wanted = withEndingsOf(before, old)
  const put = withEndingsOf(before, text)
  const starts = occurrences(before, wanted)
  if (starts.length === 0) {
    throw new Refusal(`No replacement was performed, old_str \`${old}\` did not appear verbatim in ${target.shown}.`)
  }
  const line = (offset: number) => before.slice(0, offset).split('\n').length
  if (starts.length > 1) {
    const lines = starts.map(line).join(', ')
    throw new Refusal(
      `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ${lines}. Please ensure it is unique`,
    )
  }
  const start = starts[0]!
  const after = before.slice(0, start) + put + before.slice(start + wanted.length)
  write(target, after)

  const lines = split(after)
  const first = line(start)
  const last = first + put.split('\n').length - 1
  const snippet = numbered(lines, Math.max(1, first - AROUND), Math.min(lines.length, last + AROUND))
  return `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${snippet}`
}

function insert(target: Place, at: unknown, text: string): string {
  const before = read(target)
  const count = split(before).length
  const line = typeof at === 'string' && /^\d+$/.test(at) ? Number(at) : at
  if (typeof line !== 'number' || !Number.isInteger(line) || line < 0 || line > count) {
    throw new Refusal(
      `Error: Invalid \`insert_line\` parameter: ${said(at)}. It should be within the range of lines of the file: [0, ${count}]`,
    )
  }
  const newline = endings(before)
  // Byte for byte, the lines around stay as they are; only a last line that is not ended gets its ending.
  let offset = 0
  for (let passed = 0; passed < line; passed++) {
    const end = before.indexOf('\n', offset)
    offset = end < 0 ? before.length : end + 1
  }
  const head = before.slice(0, offset)
  const put = withEndingsOf(before, text)
  const lead = head === '' || head.endsWith('\n') ? '' : newline
  write(target, head + lead + (put.endsWith('\n') ? put : put + newline) + before.slice(offset))
  return `The file ${target.shown} has been edited.`
}

function remove(target: Place): string {
  if (target.segments.length === 0) throw new Refusal('Cannot delete the memory directory itself')
  if (!find(target)) throw new Refusal(`Error: The path ${target.shown} does not exist`)
  rmSync(target.disk, { recursive: true })
  syncFolder(dirname(target.disk))
  return `Successfully deleted ${target.shown}`
}

function move(from: Place, to: Place): string {
  if (from.segments.length === 0) throw new Refusal('Cannot rename the memory directory itself')
  if (!find(from)) throw new Refusal(`Error: The path ${from.shown} does not exist`)
  if (to.segments.length === 0 || find(to)) throw new Refusal(`Error: The destination ${to.shown} already exists`)
  if (`${to.disk}/`.startsWith(`${from.disk}/`)) {
    throw new Refusal(`Error: ${from.shown} cannot be moved into itself (${to.shown})`)
  }
  makeFolders(to)
  renameSync(from.disk, to.disk)
  syncFolder(dirname(from.disk))
  syncFolder(dirname(to.disk))
  return `Successfully renamed ${from.shown} to ${to.shown}`
}

// ---- Arguments ----

class Refusal extends Error {}

function missing(args: Fields, name: string): Refusal {
  return new Refusal(`Error: \`${name}\` is required for ${args.command}.`)
}

function required(args: Fields, name: string): string {
  const value = args[name]
  if (typeof value !== 'string') throw missing(args, name)
  return value
}

/** `..` is refused even where it would come back: what it means depends on links. */
function place(args: Fields, name: string, context: Context): Place {
  const shown = required(args, name)
  if (shown === '') throw missing(args, name)
  const [root, ...segments] = shown.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (shown.startsWith('/') || root !== ROOT || segments.includes('..') || shown.includes('\0')) {
    throw new Refusal(`Path must start with memory, got: ${shown}`)
  }
  if (segments.some((segment) => segment === LOCK || segment === TEMPORARY)) {
    throw new Refusal(`Error: ${LOCK} and ${TEMPORARY} belong to the memory tool itself, got: ${shown}`)
  }
  return { shown, segments, disk: join(context.directory, ROOT, ...segments) }
}

function viewRange(range: unknown, count: number): [number, number] {
  if (range === undefined || range === null) return [1, count]
  const [first, last] = (Array.isArray(range) && range.length === 2 ? range : []).map(Number)
  const end = last === -1 ? Math.max(count, 1) : last
  const whole = Number.isInteger(first) && Number.isInteger(end)
  if (!whole || first! < 1 || first! > Math.max(count, 1) || end! < first!) {
    throw new Refusal(
      `Error: Invalid \`view_range\` parameter: ${said(range)}. It should be two lines within [1, ${count}]; -1 means the end`,
    )
  }
  return [first!, Math.min(end!, count)]
}

function said(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 100)
}

// ---- Text ----

/** The lines, without the empty one after a final newline. */
function split(text: string): string[] {
  if (text === '') return []
  return text.replace(/\n$/, '').split('\n').map((line) => line.replace(/\r$/, ''))
}

function numbered(lines: string[], first: number, last: number): string {
  return lines.slice(first - 1, last).map((line, index) => `${String(first + index).padStart(6)}\t${line}`).join('\n')
}

function endings(text: string): string {
  const all = text.split('\n').length - 1
  return all > 0 && text.split('\r\n').length - 1 === all ? '\r\n' : '\n'
}

/** Models write \n; in a file whose lines all end in \r\n that means \r\n. */
function withEndingsOf(file: string, text: string): string {
  return endings(file) === '\r\n' ? text.replace(/\r?\n/g, '\r\n') : text
}

function occurrences(text: string, wanted: string): number[] {
  const starts: number[] = []
  for (let at = text.indexOf(wanted); at >= 0 && starts.length < 100; at = text.indexOf(wanted, at + 1)) starts.push(at)
  return starts
}

function listing(target: Place, lines: string[]): string {
  const words = `Here're the files and directories up to 2 levels deep in ${target.shown}, excluding hidden items and node_modules:`
  const shown = lines.slice(0, MAX_LISTED)
  const more = lines.length > MAX_LISTED ? [`(more than ${MAX_LISTED} entries; view a folder below for the rest)`] : []
  return [words, ...shown, ...more].join('\n')
}

function readable(bytes: number): string {
  let size = bytes
  let unit = 0
  for (; size >= 1024 && unit < 3; unit++) size /= 1024
  return unit === 0 ? `${bytes}B` : `${size.toFixed(1)}${'BKMG'[unit]}`
}

// ---- Disk ----

/** What is there, if anything. Every part below the checkout is looked at, and none may be a link. */
function find(target: Place): Stats | null {
  let disk = join(target.disk, ...target.segments.map(() => '..'))
  let found = statOf(disk)
  for (const [index, segment] of ['', ...target.segments].entries()) {
    if (index > 0) {
      if (!found) return null
      if (!found.isDirectory()) {
        throw new Refusal(`Error: ${[ROOT, ...target.segments.slice(0, index - 1)].join('/')} is not a directory`)
      }
      disk = join(disk, segment)
      found = statOf(disk)
    }
    if (found?.isSymbolicLink()) {
      throw new Refusal(`Error: ${[ROOT, ...target.segments.slice(0, index)].join('/')} is a link, and links are not followed`)
    }
  }
  return found
}

function statOf(disk: string): Stats | null {
  try {
    return lstatSync(disk)
  } catch (error) {
    if (code(error) === 'ENOENT') return null
    if (code(error) === 'ENAMETOOLONG') throw new Refusal('Error: The path is too long')
    throw error
  }
}

function read(target: Place, hint = ''): string {
  const found = find(target)
  if (!found) throw new Refusal(`Error: The path ${target.shown} does not exist${hint}`)
  if (!found.isFile()) throw new Refusal(`Error: ${target.shown} is not a file`)
  // Not to follow a link, nor to wait for a pipe, that took the file's place since.
  const file = openSync(target.disk, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const length = fstatSync(file).size
    if (length > MAX_BYTES) throw new Refusal(`Error: File ${target.shown} is larger than ${MAX_BYTES / 1024 / 1024} MiB`)
    const bytes = Buffer.alloc(length)
    let size = 0
    for (let got = -1; got !== 0 && size < length; size += got) got = readSync(file, bytes, size, length - size, null)
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, size))
    if (text.includes('\0')) throw new TypeError('a zero byte')
    return text
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal(`Error: File ${target.shown} is not a text file`)
    throw error
  } finally {
    closeSync(file)
  }
}

/** Whole or not at all: a reader, or a power cut, sees the old file or the new one. */
function write(target: Place, text: string): void {
  if (Buffer.byteLength(text) > MAX_BYTES) {
    throw new Refusal(`Error: File ${target.shown} would be larger than ${MAX_BYTES / 1024 / 1024} MiB`)
  }
  makeFolders(target)
  const folder = dirname(target.disk)
  const temporary = join(folder, TEMPORARY)
  rmSync(temporary, { force: true })
  const file = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
    renameSync(temporary, target.disk)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  syncFolder(folder)
}

function makeFolders(target: Place): void {
  if (target.segments.length > 1) {
    const parent = { ...target, segments: target.segments.slice(0, -1), disk: dirname(target.disk) }
    const found = find(parent)
    if (found && !found.isDirectory()) {
      throw new Refusal(`Error: ${[ROOT, ...parent.segments].join('/')} is not a directory`)
    }
  }
  const folder = dirname(target.disk)
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (!made) return
  for (let above = dirname(folder); above.length >= dirname(made).length; above = dirname(above)) syncFolder(above)
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Adds up what a folder holds, and adds a line for each entry of its first two levels. Links are not followed. */
function measure(folder: string, shown: string, level: number, lines: string[]): number {
  let total = 0
  for (const name of readdirSync(folder).sort()) {
    if (name.startsWith('.') || name === 'node_modules') continue
    if (lines.length > MAX_LISTED) break
    const found = statOf(join(folder, name))
    if (!found || found.isSymbolicLink()) continue
    const path = `${shown}/${name}`
    const slot = level <= 2 ? lines.push('') - 1 : -1
    const size = found.isDirectory() ? measure(join(folder, name), path, level + 1, lines) : found.size
    if (slot >= 0) lines[slot] = `${readable(size)}\t${path}`
    total += size
  }
  return total
}

// ---- One writer at a time, in every process ----

/** Runs `work`, which does not wait for anything, while no other writer of this memory/ runs. */
async function locked(context: Context, work: () => string): Promise<string> {
  const root = { shown: ROOT, segments: [], disk: join(context.directory, ROOT) }
  const found = find(root)
  if (found && !found.isDirectory()) throw new Refusal(`Error: ${ROOT} is not a directory`)
  if (!found) {
    mkdirSync(root.disk, { recursive: true, mode: 0o700 })
    chmodSync(root.disk, 0o700)
  }
  const lock = join(root.disk, LOCK)
  const owner = `${process.pid} ${pidSpace()} ${randomUUID()}`
  const deadline = Date.now() + LOCK_WAIT_MS
  for (;;) {
    context.signal.throwIfAborted()
    if (take(lock, owner)) break
    breakStale(lock, owner)
    if (Date.now() > deadline) {
      throw new Error(`memory/ is busy: ${ROOT}/${LOCK} is held by another writer (${ownerOf(lock)}). Try again.`)
    }
    await sleep(2 + Math.random() * 8, undefined, { signal: context.signal })
  }
  try {
    return work()
  } finally {
    if (ownerOf(lock) === owner) unlinkSync(lock)
  }
}

function take(lock: string, owner: string): boolean {
  try {
    writeFileSync(lock, owner, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (code(error) === 'EEXIST') return false
    throw error
  }
}

/**
 * Removes the lock of a writer that was killed. Two that wait must not both do so, or the second would remove the
 * first one's new lock: so whoever removes it holds a lock for that, and looks again.
 */
function breakStale(lock: string, owner: string): void {
  if (!isStale(lock)) return
  const breaker = `${lock}.stale`
  if (!take(breaker, owner)) {
    if (isStale(breaker)) rmSync(breaker, { force: true })
    return
  }
  try {
    if (isStale(lock)) rmSync(lock, { force: true })
  } finally {
    rmSync(breaker, { force: true })
  }
}

function isStale(lock: string): boolean {
  try {
    const age = Date.now() - lstatSync(lock).mtimeMs
    if (age > LOCK_STALE_MS) return true
    // A lock that is made but not yet filled in has no owner to ask; a process elsewhere cannot be asked from here.
    const [pid, space] = ownerOf(lock).split(' ')
    if (!pid || space !== pidSpace()) return false
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return code(error) === 'ESRCH'
  }
}

/** Where a process id means the same process: this machine and, on Linux, this namespace. */
function pidSpace(): string {
  try {
    return `${hostname()}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

function ownerOf(lock: string): string {
  try {
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    return readFileSync(lock, { encoding: 'utf8', flag })
  } catch {
    return ''
  }
}

function code(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
