// What holds for every tool: the module's shape (M1), what it may import (E2), and the text that users rely on (E2).
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { provider } from './provider.ts'

const TOOLS = ['web_search', 'image_search', 'scrape_webpage', 'memory', 'show']
const source = (name: string) => readFileSync(join(import.meta.dir, `../tools/${name}.ts`), 'utf8')

describe.each(TOOLS)('%s', (name) => {
  test('M1: the default export is complete, and parameters are plain JSON', async () => {
    const tool = (await import(`../tools/${name}.ts`)).default
    expect(tool.description.trim()).not.toBe('')
    expect(tool.parameters.type).toBe('object')
    expect(JSON.parse(JSON.stringify(tool.parameters))).toEqual(tool.parameters)
    expect(tool.execute).toBeFunction()
  })

  test('E2: it imports only node:*', () => {
    const imports = new Bun.Transpiler({ loader: 'ts' }).scanImports(source(name))
    expect(imports.filter((found) => !found.path.startsWith('node:'))).toEqual([])
    expect(source(name)).not.toContain('process.env')
  })
})

test('the lines that reach a service are the same in all three web tools', () => {
  const shared = (name: string) => {
    const text = source(name)
    return text.slice(text.indexOf('// ---- How this tool reaches'), text.indexOf("return typeof value === 'string'"))
  }
  expect(shared('web_search').length).toBeGreaterThan(2_000)
  expect(shared('image_search')).toBe(shared('web_search'))
  expect(shared('scrape_webpage')).toBe(shared('web_search'))
})

const STATEMENT =
  "const queries = String(args.query ?? '').split('|||').map((query) => query.trim()).filter(Boolean)"

test('E2: the documented statement stands in execute, and the documented change works', async () => {
  const text = source('web_search')
  expect(text.split(STATEMENT).length).toBe(2)
  const rest = text.slice(text.indexOf(STATEMENT) + STATEMENT.length, text.indexOf('/** One query'))
  expect(rest).not.toContain('args.query')

  const folder = mkdtempSync(join(tmpdir(), 'beeuni-'))
  const changed = join(folder, 'web_search.ts')
  writeFileSync(changed, text.replace(STATEMENT, `${STATEMENT}\n  .map((query) => \`site:docs.example.com \${query}\`)`))
  const tool = (await import(changed)).default
  await using server = provider(() => Response.json({ results: [] }))
  await tool.execute({ query: 'a ||| b' }, server.context)
  expect(server.requests.map((request) => request.body.query).sort()).toEqual([
    'site:docs.example.com a',
    'site:docs.example.com b',
  ])
})
