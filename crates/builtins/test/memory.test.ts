// memory: each command's words, what keeps paths inside, and what many writers and killed writers leave behind.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, utimesSync, writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import memory from '../tools/memory.ts'
import { outcome } from './provider.ts'

const top = mkdtempSync(join(tmpdir(), 'beeuni-'))
let directory = ''
const signal = new AbortController().signal
const call = (args: Record<string, unknown>): Promise<string> => outcome(memory.execute(args, { directory, signal }))
const disk = (path: string) => join(directory, path)
const put = (path: string, text: string | Uint8Array) => {
  mkdirSync(join(disk(path), '..'), { recursive: true })
  writeFileSync(disk(path), text)
}
const get = (path: string) => readFileSync(disk(path), 'utf8')
const mode = (path: string) => (lstatSync(disk(path)).mode & 0o777).toString(8)

beforeEach(() => {
  directory = mkdtempSync(join(top, 'checkout-'))
})
afterAll(() => rmSync(top, { recursive: true }))

describe('view', () => {
  test('a folder, two levels deep', async () => {
    put('memory/b/c/deep.md', 'x'.repeat(1024))
    put('memory/b/c.md', 'x'.repeat(512))
    put('memory/a.md', '')
    put('memory/.hidden', 'x')
    put('memory/node_modules/x', 'x')
    expect(await call({ command: 'view', path: 'memory' })).toBe(
      [
        "Here're the files and directories up to 2 levels deep in memory, excluding hidden items and node_modules:",
        '1.5K\tmemory',
        '0B\tmemory/a.md',
        '1.5K\tmemory/b',
        '1.0K\tmemory/b/c',
        '512B\tmemory/b/c.md',
      ].join('\n'),
    )
    expect(await call({ command: 'view', path: 'memory/b/' })).toContain('1.0K\tmemory/b/c/deep.md')
  })

  test('before the first note', async () => {
    expect(await call({ command: 'view', path: 'memory' })).toEndWith('node_modules:\n0B\tmemory')
    expect(existsSync(disk('memory'))).toBe(false)
  })

  test('very many files', async () => {
    mkdirSync(disk('memory'))
    for (let index = 0; index < 2_100; index++) writeFileSync(disk(`memory/${index}`), '')
    const lines = (await call({ command: 'view', path: 'memory' })).split('\n')
    expect(lines.length).toBe(2_002)
    expect(lines.at(-1)).toBe('(more than 2000 entries; view a folder below for the rest)')
  })

  test.each([
    [undefined, '     1\ta\n     2\tb\n     3\tc'],
    [[2, 3], '     2\tb\n     3\tc'],
    [[2, -1], '     2\tb\n     3\tc'],
    [[1, 99], '     1\ta\n     2\tb\n     3\tc'],
  ])('a file, %j', async (view_range, text) => {
    put('memory/f', 'a\r\nb\nc\n')
    expect(await call({ command: 'view', path: 'memory/f', view_range })).toBe(
      `Here's the content of memory/f with line numbers:\n${text}`)
  })

  test.each([[[0, 1]], [[4, 5]], [[2, 1]], [[1]], ['1'], [[1, 'x']], [[1.5, 2]]])('refuses the range %j', async (view_range) => {
    put('memory/f', 'a\nb\nc\n')
    expect(await call({ command: 'view', path: 'memory/f', view_range })).toStartWith('Error: Invalid `view_range` parameter: ')
  })

  test('what cannot be viewed', async () => {
    put('memory/binary', new Uint8Array([0xff, 0xfe, 0]))
    put('memory/zero', 'a\0b')
    put('memory/huge', new Uint8Array(5 * 1024 * 1024))
    Bun.spawnSync(['mkfifo', disk('memory/pipe')])
    expect(await call({ command: 'view', path: 'memory/binary' })).toBe('Error: File memory/binary is not a text file')
    expect(await call({ command: 'view', path: 'memory/zero' })).toBe('Error: File memory/zero is not a text file')
    expect(await call({ command: 'view', path: 'memory/huge' })).toBe('Error: File memory/huge is larger than 4 MiB')
    expect(await call({ command: 'view', path: 'memory/pipe' })).toBe('Error: memory/pipe is not a file')
    expect(await call({ command: 'view', path: 'memory/none' })).toBe('The path memory/none does not exist. Please provide a valid path.')
  })
})

test('create', async () => {
  expect(await call({ command: 'create', path: 'memory/a/b.md', file_text: 'hé\n' })).toBe('File created successfully at: memory/a/b.md')
  expect(get('memory/a/b.md')).toBe('hé\n')
  expect([mode('memory'), mode('memory/a'), mode('memory/a/b.md')]).toEqual(['700', '700', '600'])
  expect(await call({ command: 'create', path: 'memory/a/b.md', file_text: '' })).toBe('Error: File memory/a/b.md already exists')
  expect(await call({ command: 'create', path: 'memory/a', file_text: '' })).toBe('Error: File memory/a already exists')
  expect(await call({ command: 'create', path: 'memory/a/b.md/c', file_text: '' })).toBe('Error: memory/a/b.md is not a directory')
  expect(await call({ command: 'create', path: 'memory/big', file_text: 'x'.repeat(4 * 1024 * 1024 + 1) })).toBe('Error: File memory/big would be larger than 4 MiB')
  expect(readdirSync(disk('memory')).sort()).toEqual(['a'])
})

describe('str_replace', () => {
  test('the snippet shows where', async () => {
    put('memory/f', '1\n2\n3\n4\n5\n6\n7\n')
    expect(await call({ command: 'str_replace', path: 'memory/f', old_str: '4\n5', new_str: 'four' })).toBe(
      'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n' +
        '     2\t2\n     3\t3\n     4\tfour\n     5\t6\n     6\t7')
    expect(get('memory/f')).toBe('1\n2\n3\nfour\n6\n7\n')
    expect(mode('memory/f')).toBe('600')
  })

  test.each([
    ['new_str is literal', 'a$b', 'a', "$&$1$$$'", "$&$1$$$'$b"],
    ['old_str is literal', 'a.b axb', 'a.b', '', ' axb'],
    ['CRLF is kept', 'a\r\nb\r\nc\r\n', 'a\nb', 'x\ny\nz', 'x\r\ny\r\nz\r\nc\r\n'],
    ['mixed endings are left alone', 'a\r\nb\nc', 'b\nc', 'x\ny', 'a\r\nx\ny'],
    ['no final newline', 'a', 'a', 'b', 'b'],
    ['a mark at the beginning', '\uFEFFa', 'a', 'b', '\uFEFFb'],
  ])('%s', async (_, before, old_str, new_str, after) => {
    put('memory/f', before)
    expect(await call({ command: 'str_replace', path: 'memory/f', old_str, new_str })).toStartWith('The memory file has been edited.')
    expect(get('memory/f')).toBe(after)
  })

  test('refusals', async () => {
    put('memory/f', 'a\nb\na\n')
    const replace = { command: 'str_replace', path: 'memory/f', new_str: 'x' }
    expect(await call({ ...replace, old_str: 'z' })).toBe('No replacement was performed, old_str `z` did not appear verbatim in memory/f.')
    expect(await call({ ...replace, old_str: 'a' })).toBe(
      'No replacement was performed. Multiple occurrences of old_str `a` in lines: 1, 3. Please ensure it is unique')
    expect(await call({ ...replace, path: 'memory/none', old_str: 'a' })).toBe('Error: The path memory/none does not exist. Please provide a valid path.')
    expect(await call({ ...replace, path: 'memory', old_str: 'a' })).toBe('Error: memory is not a file')
  })
})

describe('insert', () => {
  test.each([
    ['a\nb\n', 0, 'x', 'x\na\nb\n'],
    ['a\nb\n', 1, 'x\n', 'a\nx\nb\n'],
    ['a\nb\n', '2', 'x', 'a\nb\nx\n'],
    ['a\nb', 2, 'x', 'a\nb\nx\n'],
    ['a\r\nb\r\n', 1, 'x\ny', 'a\r\nx\r\ny\r\nb\r\n'],
    ['', 0, 'x', 'x\n'],
  ])('%j after line %j', async (before, insert_line, insert_text, after) => {
    put('memory/f', before)
    expect(await call({ command: 'insert', path: 'memory/f', insert_line, insert_text })).toBe('The file memory/f has been edited.')
    expect(get('memory/f')).toBe(after)
  })

  test.each([[-1, '-1'], [3, '3'], [1.5, '1.5'], ['x', 'x'], [{}, '{}']])('refuses line %j', async (insert_line, said) => {
    put('memory/f', 'a\nb\n')
    expect(await call({ command: 'insert', path: 'memory/f', insert_line, insert_text: 'x' })).toBe(
      `Error: Invalid \`insert_line\` parameter: ${said}. It should be within the range of lines of the file: [0, 2]`)
  })

  test('no such file', async () => {
    expect(await call({ command: 'insert', path: 'memory/f', insert_line: 0, insert_text: 'x' })).toBe('Error: The path memory/f does not exist')
  })
})

test('delete', async () => {
  put('memory/a/b', 'x')
  expect(await call({ command: 'delete', path: 'memory/a' })).toBe('Successfully deleted memory/a')
  expect(existsSync(disk('memory/a'))).toBe(false)
  expect(await call({ command: 'delete', path: 'memory/a' })).toBe('Error: The path memory/a does not exist')
  expect(await call({ command: 'delete', path: 'memory/./' })).toBe('Cannot delete the memory directory itself')
})

test('rename', async () => {
  put('memory/a', 'x')
  put('memory/b', 'y')
  const rename = (old_path: string, new_path: string) => call({ command: 'rename', old_path, new_path })
  expect(await rename('memory/a', 'memory/b')).toBe('Error: The destination memory/b already exists')
  expect(await rename('memory/a', 'memory/new/a')).toBe('Successfully renamed memory/a to memory/new/a')
  expect(get('memory/new/a')).toBe('x')
  expect(await rename('memory/a', 'memory/c')).toBe('Error: The path memory/a does not exist')
  expect(await rename('memory/new', 'memory/new/in')).toBe('Error: memory/new cannot be moved into itself (memory/new/in)')
  expect(await rename('memory', 'memory/x')).toBe('Cannot rename the memory directory itself')
  expect(await rename('memory/b', 'other/b')).toBe('Path must start with memory, got: other/b')
})

test.each([
  [{}, 'Error: unknown command'],
  [{ command: 'undo' }, 'Error: unknown command'],
  [{ command: 'view' }, 'Error: `path` is required for view.'],
  [{ command: 'view', path: '' }, 'Error: `path` is required for view.'],
  [{ command: 'create', path: 'memory/f' }, 'Error: `file_text` is required for create.'],
  [{ command: 'create', path: 'memory/f', file_text: { a: 1 } }, 'Error: `file_text` is required for create.'],
  [{ command: 'str_replace', path: 'memory/f', new_str: '' }, 'Error: `old_str` is required for str_replace.'],
  [{ command: 'str_replace', path: 'memory/f', old_str: '', new_str: '' }, 'Error: `old_str` is required for str_replace.'],
  [{ command: 'str_replace', path: 'memory/f', old_str: 'x' }, 'Error: `new_str` is required for str_replace.'],
  [{ command: 'insert', path: 'memory/f', insert_text: '' }, 'Error: `insert_line` is required for insert.'],
  [{ command: 'insert', path: 'memory/f', insert_line: 0 }, 'Error: `insert_text` is required for insert.'],
  [{ command: 'rename', new_path: 'memory/f' }, 'Error: `old_path` is required for rename.'],
  [{ command: 'rename', old_path: 'memory/f' }, 'Error: `new_path` is required for rename.'],
])('%j', async (args, words) => {
  expect(await call(args)).toBe(words)
})

describe('no path leaves memory/', () => {
  test.each([
    '/etc/passwd', '/memory/f', '../memory/f', 'memory/../secret', 'memory/a/../../secret', 'memory/a/../f', 'memories/f',
    'memory.md', 'secret', '..', '.', './', 'memory/\0', 'memory\\..\\secret', '~/memory',
  ])('%j', async (path) => {
    put('secret', 'hidden')
    expect(await call({ command: 'view', path })).toBe(`Path must start with memory, got: ${path}`)
    expect(await call({ command: 'create', path, file_text: 'x' })).toBe(`Path must start with memory, got: ${path}`)
  })

  const everyCommand = (path: string) => [
    { command: 'view', path },
    { command: 'create', path, file_text: 'x' },
    { command: 'str_replace', path, old_str: 'hidden', new_str: 'x' },
    { command: 'insert', path, insert_line: 0, insert_text: 'x' },
    { command: 'delete', path },
    { command: 'rename', old_path: path, new_path: 'memory/stolen' },
    { command: 'rename', old_path: 'memory/own', new_path: path },
  ]

  test.each([
    ['a link to a file', 'memory/link', 'memory/link'],
    ['a link to a folder', 'memory/folder', 'memory/folder/secret'],
    ['a link to nothing', 'memory/nothing', 'memory/nothing'],
  ])('%s', async (_, link, path) => {
    put('outside/secret', 'hidden')
    put('memory/own', 'own')
    const targets: Record<string, string> = { 'memory/link': '../outside/secret', 'memory/folder': '../outside', 'memory/nothing': '../new' }
    symlinkSync(targets[link]!, disk(link))
    for (const args of everyCommand(path)) {
      expect(await call(args)).toBe(`Error: ${link} is a link, and links are not followed`)
    }
    expect([get('outside/secret'), get('memory/own'), existsSync(disk('new'))]).toEqual(['hidden', 'own', false])
    expect(await call({ command: 'view', path: 'memory' })).toEndWith(':\n3B\tmemory\n3B\tmemory/own')
  })

  test('memory itself is a link', async () => {
    put('outside/secret', 'hidden')
    symlinkSync('outside', disk('memory'))
    for (const args of everyCommand('memory/secret')) {
      expect(await call(args)).toBe('Error: memory is a link, and links are not followed')
    }
    expect(readdirSync(disk('outside'))).toEqual(['secret'])
  })

  test('deleting a folder leaves what its links point to', async () => {
    put('outside/secret', 'hidden')
    mkdirSync(disk('memory/a'), { recursive: true })
    symlinkSync('../../outside', disk('memory/a/link'))
    expect(await call({ command: 'delete', path: 'memory/a' })).toBe('Successfully deleted memory/a')
    expect(get('outside/secret')).toBe('hidden')
  })

  test('the lock and the temporary file are not notes', async () => {
    expect(await call({ command: 'create', path: 'memory/.memory.lock', file_text: '' })).toStartWith('Error: .memory.lock and ')
    expect(await call({ command: 'delete', path: 'memory/a/.memory.tmp' })).toStartWith('Error: .memory.lock and ')
  })
})

describe('many writers (F8)', () => {
  test('ten at once in one process', async () => {
    put('memory/f', '')
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => call({ command: 'insert', path: 'memory/f', insert_line: 0, insert_text: `${index}` })))
    expect(get('memory/f').trim().split('\n').sort()).toEqual([...'0123456789'])
    expect(readdirSync(disk('memory'))).toEqual(['f'])
  })

  test('four processes, while a reader never sees half a file', async () => {
    put('memory/f', 'first\n')
    const script = `
      const memory = (await import(${JSON.stringify(join(import.meta.dir, '../tools/memory.ts'))})).default
      const [directory, name] = process.argv.slice(-2)
      const context = { directory, signal: new AbortController().signal }
      for (let n = 0; n < 25; n++) {
        const said = await memory.execute({ command: 'insert', path: 'memory/f', insert_line: 0, insert_text: name + n }, context)
        if (!said.startsWith('The file')) throw new Error(said)
      }`
    const file = join(top, 'writer.ts')
    writeFileSync(file, script)
    const writers = [...'abcd'].map((name) => Bun.spawn([process.execPath, file, directory, name], { stderr: 'inherit' }))
    let running = true
    const ended = Promise.all(writers.map((writer) => writer.exited)).finally(() => (running = false))
    while (running) {
      expect(get('memory/f')).toEndWith('first\n')
      await Bun.sleep(1)
    }
    expect(await ended).toEqual([0, 0, 0, 0])
    expect(new Set(get('memory/f').trim().split('\n')).size).toBe(101)
    expect(readdirSync(disk('memory'))).toEqual(['f'])
  }, 60_000)

  const lock = (owner: string) => put('memory/.memory.lock', owner)
  const space = () => {
    try {
      return `${hostname()}/${readlinkSync('/proc/self/ns/pid')}`
    } catch {
      return hostname()
    }
  }
  const create = { command: 'create', path: 'memory/f', file_text: 'x' }

  test('a writer that was killed holds nobody up', async () => {
    const gone = Bun.spawnSync(['true']).pid
    lock(`${gone} ${space()} x`)
    put('memory/.memory.tmp', 'half')
    expect(await call(create)).toBe('File created successfully at: memory/f')
    expect(readdirSync(disk('memory'))).toEqual(['f'])
  })

  test('nor does one elsewhere, after a minute', async () => {
    lock('1 elsewhere x')
    const past = Date.now() / 1000 - 61
    utimesSync(disk('memory/.memory.lock'), past, past)
    expect(await call(create)).toBe('File created successfully at: memory/f')
  })

  test('one that lives is waited for, and a stop ends the wait', async () => {
    lock(`${process.pid} ${space()} x`)
    const stop = new AbortController()
    const waiting = outcome(memory.execute(create, { directory, signal: stop.signal }))
    await Bun.sleep(30)
    expect(existsSync(disk('memory/f'))).toBe(false)
    stop.abort()
    expect(await waiting).toBe('error: The operation was aborted.')
    const second = call(create)
    rmSync(disk('memory/.memory.lock'))
    expect(await second).toBe('File created successfully at: memory/f')
  })
})
