// Shows something to the user: the web UI draws a card from the call's arguments, this module checks them.
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'

type Fields = Record<string, unknown>

/** What a type needs to have something to show. */
const NEEDS: Record<string, 'path' | 'url' | 'content'> = {
  file: 'path',
  image: 'path',
  url: 'url',
  text: 'content',
  error: 'content',
  video: 'path',
  audio: 'path',
  code: 'content',
  markdown: 'content',
  pdf: 'path',
  html: 'content',
  csv: 'path',
  xlsx: 'path',
  docx: 'path',
  pptx: 'path',
}
const CHOICES: Record<string, string[]> = {
  variant: ['compact', 'full', 'gallery', 'detail'],
  aspect_ratio: ['auto', '1:1', '16:9', '9:16', '4:3', '3:2', '21:9'],
  theme: ['default', 'success', 'warning', 'info', 'danger'],
}
const TEXTS = ['title', 'description', 'path', 'url', 'content', 'language']
const MAX_ITEMS = 100

const properties = {
  type: { type: 'string', enum: Object.keys(NEEDS), description: 'What is shown' },
  title: { type: 'string', description: 'Heading of the card' },
  description: { type: 'string', description: 'A line below the heading' },
  path: { type: 'string', description: 'The file, for file, image, video, audio, pdf, csv, xlsx, docx and pptx' },
  url: { type: 'string', description: 'The http(s) address, for url' },
  content: { type: 'string', description: 'The text itself, for text, error, code, markdown and html' },
  variant: { type: 'string', enum: CHOICES.variant },
  aspect_ratio: { type: 'string', enum: CHOICES.aspect_ratio },
  theme: { type: 'string', enum: CHOICES.theme },
  language: { type: 'string', description: 'Language of the code, e.g. "python"' },
  metadata: { type: 'object', description: 'Anything else worth keeping with the card' },
}

export default {
  description:
    'Show the user a file, an image, a link, a text, a table or another result as a card. ' +
    'Several at once: give `items`, a JSON array of such entries, and they become a carousel.',
  parameters: {
    type: 'object',
    properties: {
      action: { type: 'string', enum: ['show'], default: 'show' },
      ...properties,
      items: { type: 'string', description: `A JSON array of objects with these same fields (at most ${MAX_ITEMS})` },
    },
  },

  async execute(args: Fields, context: { directory: string }) {
    const action = isAbsent(args.action) ? 'show' : String(args.action)
    if (action !== 'show') throw new Error(`'action' must be 'show'; got '${action}'.`)
    if (!isAbsent(args.items)) return await carousel(args, context.directory)
    const entry = await check(args, context.directory)
    return { success: true, action, entry, message: `Showing ${entry.type}: ${name(entry)}` }
  },
}

/** Shows the items that can be shown; what is wrong with the others is told beside them. */
async function carousel(args: Fields, directory: string) {
  const items = parseItems(args.items)
  const shown: Fields[] = []
  const warnings: string[] = []
  for (const [index, item] of items.slice(0, MAX_ITEMS).entries()) {
    try {
      if (!isObject(item)) throw new Error('not an object.')
      shown.push(await check(item, directory))
    } catch (error) {
      warnings.push(`Item ${index + 1}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  if (shown.length === 0) throw new Error(`No item can be shown. ${warnings.join(' ')}`)
  if (items.length > MAX_ITEMS) warnings.push(`Only the first ${MAX_ITEMS} of ${items.length} items are shown.`)
  return {
    success: true,
    action: 'show',
    ...pick(args, ['title', 'description']),
    items: shown,
    message: `Showing ${shown.length} ${shown.length === 1 ? 'item' : 'items'}`,
    ...(warnings.length > 0 ? { warnings } : {}),
  }
}

function parseItems(value: unknown): unknown[] {
  let items = value
  if (typeof value === 'string') {
    try {
      items = JSON.parse(value)
    } catch {
      throw new Error("Invalid JSON in 'items' parameter. Must be a JSON array of objects.")
    }
  }
  if (!Array.isArray(items) || items.length === 0) throw new Error("'items' must be a non-empty JSON array.")
  if (!items.some(isObject)) throw new Error("Invalid JSON in 'items' parameter. Must be a JSON array of objects.")
  return items
}

/** The entry as it will be drawn, with nothing but known fields; an error says what it lacks. */
async function check(args: Fields, directory: string): Promise<Fields> {
  const type = isAbsent(args.type) ? '' : String(args.type)
  const needs = Object.hasOwn(NEEDS, type) ? NEEDS[type] : undefined
  if (!needs) {
    const got = type ? `got '${type}'` : 'it is missing'
    throw new Error(`'type' must be one of ${Object.keys(NEEDS).join(', ')}; ${got}.`)
  }
  const entry: Fields = { type, ...pick(args, TEXTS) }
  if (isAbsent(entry[needs])) throw new Error(`'${needs}' is required when type is '${type}'.`)
  if (needs === 'path') await requireFile(String(entry.path), directory)
  if (needs === 'url' && !/^https?:\/\/[^\s]+$/i.test(String(entry.url))) {
    throw new Error(`'url' must be an http(s) address; got '${entry.url}'.`)
  }
  for (const [field, choices] of Object.entries(CHOICES)) {
    if (isAbsent(args[field])) continue
    const chosen = String(args[field])
    if (!choices.includes(chosen)) throw new Error(`'${field}' must be one of ${choices.join(', ')}; got '${chosen}'.`)
    entry[field] = chosen
  }
  if (!isAbsent(args.metadata)) entry.metadata = parseMetadata(args.metadata)
  return entry
}

async function requireFile(path: string, directory: string): Promise<void> {
  const found = await stat(resolve(directory, path)).catch(() => null)
  if (!found) throw new Error(`File not found: ${path}`)
  if (!found.isFile()) throw new Error(`Not a file: ${path}`)
}

function parseMetadata(value: unknown): Fields {
  let metadata = value
  if (typeof value === 'string') {
    try {
      metadata = JSON.parse(value)
    } catch {
      // The check below says it.
    }
  }
  if (!isObject(metadata)) throw new Error("'metadata' must be an object.")
  return metadata
}

function pick(args: Fields, names: string[]): Fields {
  return Object.fromEntries(names.filter((name) => !isAbsent(args[name])).map((name) => [name, String(args[name])]))
}

function name(entry: Fields): string {
  const text = String(entry.title ?? entry.path ?? entry.url ?? entry.content)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

/** Models often send an empty text for what they mean to leave out. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
