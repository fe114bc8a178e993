import { describe, expect, test } from 'bun:test'
import { errorText, filesOf, heal, json, resultText, toolOf, withoutRoot } from './host.ts'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const good = { description: 'd', parameters: { type: 'object' }, execute: () => 1 }
const cycle: Record<string, unknown> = {}
cycle.self = cycle

test('results read as M3 says', () => {
  for (const [value, text] of [
    ['a', 'a'], ['', ''], [undefined, ''], [null, 'null'], [0, '0'], [{ a: 1 }, '{\n  "a": 1\n}'],
    [new Uint8Array(1), '{\n  "0": 0\n}'], ['{"__proto__":1}', '{"__proto__":1}'],
    [{ a: '\ud800' }, '{\n  "a": "\ufffd"\n}'], [JSON.parse('{"__proto__":"\\ud800"}'), '{\n  "__proto__": "\ufffd"\n}'],
  ] as const) expect(resultText(value)).toBe(text)
})

test('a value that JSON cannot hold fails with words', () => {
  expect(() => resultText(cycle)).toThrow(/cyclic/)
  expect(() => resultText(() => 1)).toThrow('the tool returned a function, which JSON cannot hold')
  expect(() => resultText(Symbol('s'))).toThrow('the tool returned a symbol, which JSON cannot hold')
  expect(() => resultText({ n: 1n })).toThrow(/BigInt/)
  expect(() => resultText({ toJSON() { throw new Error('tj') } })).toThrow('tj')
})

test('toJSON runs once', () => {
  let runs = 0
  resultText({ toJSON: () => ++runs })
  expect(runs).toBe(1)
})

test('errors read as their message', () => {
  class Named extends Error { override name = 'Named' }
  for (const [error, text] of [
    [new Error('boom'), 'boom'], [new Named(''), 'Named'], ['text', 'text'], [42, '42'], [null, 'null'],
    [undefined, 'undefined'], [{ code: 1 }, '{"code":1}'], [Symbol('s'), 'the tool threw a symbol'],
    [cycle, 'the tool threw something that cannot be read'],
    [{ get message() { throw 1 } }, 'the tool threw something that cannot be read'],
  ] as const) expect(errorText(error)).toBe(text)
})

describe('a module that is no tool gets a reason that names the field', () => {
  for (const [given, reason] of [
    [undefined, /^no default export/], [null, /default export is not an object/], ['x', /default export is not an object/],
    [{ ...good, description: '' }, /^description/], [{ ...good, description: '  \n' }, /^description/],
    [{ ...good, description: 42 }, /^description/], [{ ...good, description: undefined }, /^description/],
    [{ ...good, parameters: undefined }, /^parameters/], [{ ...good, parameters: [] }, /^parameters/],
    [{ ...good, parameters: { type: 'array' } }, /^parameters/], [{ ...good, execute: 'fn' }, /^execute/],
    [{ ...good, execute: undefined }, /^execute/], [{ get description() { throw new Error('nope') } }, /^nope$/],
    [{ ...good, parameters: cycle }, /cyclic/],
  ] as const) test(String(reason), () => expect(() => toolOf({ default: given })).toThrow(reason))
})

test('odd shapes that are tools load', () => {
  class Static { static description = 'd'; static parameters = { type: 'object' }; static execute() { return 1 } }
  for (const given of [good, Object.freeze(Static), { default: good }]) expect(toolOf({ default: given }).description).toBe('d')
  expect(toolOf({ default: { ...good, description: 'a\ud800' } }).description).toBe('a\ufffd')
})

test('a schema keeps its types and order (M2)', () => {
  const parameters = { type: 'object', z: { enum: [60, 1440, null, true] }, a: { type: ['string', 'null'], const: 1, exclusiveMinimum: 0 } }
  expect(toolOf({ default: { ...good, parameters } }).parameters).toBe(JSON.stringify(parameters))
})

test('half surrogates go, whole pairs stay', () => {
  expect(heal(['\ud83d\ude00', '\ud83d', { '\ude00': 1 }])).toEqual(['😀', '\ufffd', { '\ufffd': 1 }])
  expect(json({ a: '😀\\ud800' })).toBe('{"a":"😀\\\\ud800"}')
})

test('host paths leave a text', () => {
  expect(withoutRoot("Cannot find './x' from '/a/b/tools/t.ts' in /a/b, file:///a/b/c", '/a/b')).toBe("Cannot find './x' from 'tools/t.ts' in ., c")
})

test('every import of the checkout is hashed, and nothing else', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'host-')))
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  write('tools/t.ts', "import a from './a'; import d from './d.json'; import type { T } from 'never'; import fs from 'node:fs'; import('./late.ts'); import p from 'p'; console.log(a, d, fs, p, require('./r.cjs'))")
  write('tools/a.ts', "export { default } from './t.ts'; import '../../outside'")
  write('tools/d.json', '{}')
  write('tools/late.ts', 'export default {')
  write('tools/r.cjs', '')
  write('tools/unused.ts', '')
  write('node_modules/p/package.json', '{"main":"m.js"}')
  write('node_modules/p/m.js', 'module.exports = 1')
  const files = filesOf(join(root, 'tools/t.ts'), root)
  const there = files.filter((file) => file.sha256 !== '').map((file) => file.path.slice(root.length + 1)).sort()
  expect(there).toEqual(['node_modules/p/m.js', 'node_modules/p/package.json', 'tools/a.ts', 'tools/d.json', 'tools/late.ts', 'tools/r.cjs', 'tools/t.ts'])
  expect(files.filter((file) => file.sha256 === '').map((file) => file.path)).toContain(join(root, 'tools/package.json'))
  rmSync(root, { recursive: true })
})
