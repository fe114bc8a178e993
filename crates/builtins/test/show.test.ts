// show: every type, the carousel, and each refusal's words.
import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import show from '../tools/show.ts'
import { outcome } from './provider.ts'

const directory = mkdtempSync(join(tmpdir(), 'beeuni-'))
writeFileSync(join(directory, 'a.txt'), 'x')
mkdirSync(join(directory, 'folder'))
const call = (args: Record<string, unknown>) => outcome(show.execute(args, { directory }))

const PATHS = ['file', 'image', 'video', 'audio', 'pdf', 'csv', 'xlsx', 'docx', 'pptx']
const TEXTS = ['text', 'error', 'code', 'markdown', 'html']

test('the types are those of the contract', () => {
  expect(show.parameters.properties.type.enum.toSorted()).toEqual([...PATHS, ...TEXTS, 'url'].sort())
})

test.each(PATHS)('%s needs a path', async (type) => {
  expect(await call({ type, path: 'a.txt' })).toEqual({
    success: true, action: 'show', entry: { type, path: 'a.txt' }, message: `Showing ${type}: a.txt`,
  })
  expect(await call({ type })).toBe(`error: 'path' is required when type is '${type}'.`)
  expect(await call({ type, path: 'none.txt' })).toBe('error: File not found: none.txt')
  expect(await call({ type, path: 'folder' })).toBe('error: Not a file: folder')
})

test.each(TEXTS)('%s needs content', async (type) => {
  expect(await call({ type, content: 'C', title: 'T' })).toEqual({
    success: true, action: 'show', entry: { type, title: 'T', content: 'C' }, message: `Showing ${type}: T`,
  })
  expect(await call({ type, path: 'a.txt' })).toBe(`error: 'content' is required when type is '${type}'.`)
})

test('url needs an address', async () => {
  expect(await call({ type: 'url', url: 'http://localhost:3000' })).toMatchObject({ entry: { url: 'http://localhost:3000' } })
  expect(await call({ type: 'url' })).toBe("error: 'url' is required when type is 'url'.")
  expect(await call({ type: 'url', url: 'javascript:alert(1)' })).toBe("error: 'url' must be an http(s) address; got 'javascript:alert(1)'.")
})

test('everything that an entry can hold, and nothing else', async () => {
  const entry = {
    type: 'code', title: 'T', description: 'D', content: 'x', language: 'ts',
    variant: 'full', aspect_ratio: '16:9', theme: 'info', metadata: { a: 1 },
  }
  expect((await call({ ...entry, action: 'show', path: '', url: null, other: 1 })).entry).toEqual(entry)
  expect((await call({ ...entry, metadata: '{"a":1}' })).entry).toEqual(entry)
})

test.each([
  [{}, "error: 'type' must be one of file, image, url, text, error, video, audio, code, markdown, pdf, html, csv, xlsx, docx, pptx; it is missing."],
  [{ type: 'constructor' }, "error: 'type' must be one of file, image, url, text, error, video, audio, code, markdown, pdf, html, csv, xlsx, docx, pptx; got 'constructor'."],
  [{ type: 'text', content: 'x', action: 'hide' }, "error: 'action' must be 'show'; got 'hide'."],
  [{ type: 'text', content: 'x', theme: 'pink' }, "error: 'theme' must be one of default, success, warning, info, danger; got 'pink'."],
  [{ type: 'text', content: 'x', metadata: '[' }, "error: 'metadata' must be an object."],
  [{ items: '[{' }, "error: Invalid JSON in 'items' parameter. Must be a JSON array of objects."],
  [{ items: '[1]' }, "error: Invalid JSON in 'items' parameter. Must be a JSON array of objects."],
  [{ items: '[]' }, "error: 'items' must be a non-empty JSON array."],
  [{ items: '{}' }, "error: 'items' must be a non-empty JSON array."],
  [{ items: '[{"type":"file"}]' }, "error: No item can be shown. Item 1: 'path' is required when type is 'file'."],
])('refuses %j', async (args, error) => {
  expect(await call(args)).toBe(error)
})

describe('items', () => {
  test('a carousel', async () => {
    const items = [{ type: 'image', path: 'a.txt' }, { type: 'text', content: 'x' }]
    const expected = { success: true, action: 'show', title: 'T', items, message: 'Showing 2 items' }
    expect(await call({ title: 'T', items: JSON.stringify(items) })).toEqual(expected)
    expect(await call({ title: 'T', items })).toEqual(expected)
  })

  test('what cannot be shown is told beside what can', async () => {
    const items = [{ type: 'text', content: 'x' }, 7, { type: 'file', path: 'none' }]
    expect(await call({ items: JSON.stringify(items) })).toEqual({
      success: true,
      action: 'show',
      items: [{ type: 'text', content: 'x' }],
      message: 'Showing 1 item',
      warnings: ['Item 2: not an object.', 'Item 3: File not found: none'],
    })
  })

  test('far too many', async () => {
    const got = await call({ items: JSON.stringify(Array(101).fill({ type: 'text', content: 'x' })) })
    expect(got.items.length).toBe(100)
    expect(got.warnings).toEqual(['Only the first 100 of 101 items are shown.'])
  })
})
