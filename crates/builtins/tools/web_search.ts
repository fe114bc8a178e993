// Searches the web, through the Beeuni router (Tavily's API) or at Tavily itself.

const SERVICE = {
  name: 'tavily',
  path: '/search',
  provider: 'https://api.tavily.com',
  key: 'TAVILY_API_KEY',
  headers: (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` }),
}
const TIMEOUT_MS = 60_000
const MAX_BYTES = 8 * 1024 * 1024
const MAX_QUERIES = 20
const AT_ONCE = 5

const TOPICS = ['general', 'news', 'finance']
const DEPTHS = ['basic', 'advanced']

export default {
  description:
    'Search the web. Returns an answer, sources (title, url, snippet, score, date) and images. ' +
    'Separate several queries with ||| to run them together.',
  parameters: {
    type: 'object',
    properties: {
      query: { type: 'string', description: 'What to search for; several queries separated by |||' },
      num_results: { type: 'integer', minimum: 1, maximum: 20, default: 5, description: 'Results for each query' },
      topic: { type: 'string', enum: TOPICS, default: 'general', description: 'Where to look' },
      search_depth: { type: 'string', enum: DEPTHS, default: 'basic', description: '"advanced" is slower and more thorough' },
    },
    required: ['query'],
  },

  async execute(args: Fields, context: Context) {
    const queries = String(args.query ?? '').split('|||').map((query) => query.trim()).filter(Boolean)

    if (queries.length === 0) throw new Error('The query is empty.')
    if (queries.length > MAX_QUERIES) throw new Error(`${queries.length} queries are too many: send at most ${MAX_QUERIES}.`)
    door(context.env)
    const options = {
      max_results: count(args.num_results, 1, 20, 5),
      topic: choice('topic', args.topic, TOPICS),
      search_depth: choice('search_depth', args.search_depth, DEPTHS),
      include_answer: true,
      include_images: true,
      include_image_descriptions: true,
    }
    const results = await forEach(queries, (query) => search(query, options, context))
    return results.length === 1 ? results[0] : { batch_mode: true, total_queries: results.length, results }
  },
}

/** One query's outcome; a failure is part of the result, so that the other queries keep theirs. */
async function search(query: string, options: { max_results: number }, context: Context) {
  const started = performance.now()
  try {
    const answer = await post({ query, ...options }, context)
    const seconds = Number(answer.response_time ?? Number.NaN)
    return {
      query,
      success: true,
      answer: text(answer.answer) || null,
      results: list(answer, 'results')
        .slice(0, options.max_results)
        .map((result) => ({
          title: text(result.title),
          url: text(result.url),
          snippet: text(result.content),
          score: typeof result.score === 'number' ? result.score : null,
          published_date: text(result.published_date) || null,
        })),
      images: images(answer.images),
      response_time_ms: Math.round(Number.isFinite(seconds) ? seconds * 1000 : performance.now() - started),
    }
  } catch (error) {
    context.signal.throwIfAborted()
    return { query, success: false, error: error instanceof Error ? error.message : String(error) }
  }
}

/** Images come as addresses or as objects, and only where the service has any. */
function images(value: unknown) {
  if (!Array.isArray(value)) return []
  return value
    .map((image) => ({ url: text(image) || text(fields(image).url), description: text(fields(image).description) || null }))
    .filter((image) => image.url)
}

function choice(name: string, value: unknown, choices: string[]): string {
  const chosen = value === undefined || value === null || value === '' ? choices[0]! : String(value)
  if (!choices.includes(chosen)) throw new Error(`'${name}' must be one of ${choices.join(', ')}; got ${chosen}.`)
  return chosen
}

// ---- How this tool reaches its service: the same lines in every Beeuni tool that uses the web ----

type Context = { env: Record<string, string | undefined>; signal: AbortSignal }

/** An answer other than success; `timedOut` where asking again may help. */
class ServiceError extends Error {
  timedOut: boolean
  constructor(message: string, timedOut = false) {
    super(message)
    this.timedOut = timedOut
  }
}

/** Where to send a request and what proves that we may: the Beeuni router, or the provider itself with its own key. */
function door(env: Context['env']): { url: string; headers: Record<string, string>; secret: string } {
  const router = env.BEEUNI_API_URL?.trim()
  if (router) {
    const token = env.BEEUNI_TOKEN
    if (!token) throw new Error('BEEUNI_TOKEN is not set.')
    const base = router.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '')
    const url = `${base}/v1/router/${SERVICE.name}${SERVICE.path}`
    return { url, headers: { authorization: `Bearer ${token}` }, secret: token }
  }
  const key = env[SERVICE.key]
  if (!key) throw new Error(`${SERVICE.key} is not set.`)
  return { url: SERVICE.provider + SERVICE.path, headers: SERVICE.headers(key), secret: key }
}

/** Sends `body` and returns the answer's JSON. Every failure is an error in words; a stopped turn stays an abort. */
async function post(body: object, context: Context): Promise<Fields> {
  const { url, headers, secret } = door(context.env)
  const deadline = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.any([context.signal, deadline]),
      // A redirect would carry the key to an address that nobody chose.
      redirect: 'manual',
    })
    const text = await readBounded(response)
    if (!response.ok) throw refusal(response, text)
    return parse(text)
  } catch (error) {
    context.signal.throwIfAborted()
    if (deadline.aborted) throw new ServiceError(`${SERVICE.name} did not answer within ${TIMEOUT_MS / 1000} s.`, true)
    if (error instanceof ServiceError) {
      throw new ServiceError(error.message.replaceAll(secret, '[hidden]'), error.timedOut)
    }
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServiceError(`${SERVICE.name} could not be reached: ${reason}`.replaceAll(secret, '[hidden]'))
  }
}

/** The body as text, read no further than MAX_BYTES (counted after decompression). */
async function readBounded(response: Response): Promise<string> {
  if (!response.body) return ''
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new ServiceError(`${SERVICE.name}'s answer broke off: ${error instanceof Error ? error.message : error}`)
    })
    if (done) return text + decoder.decode()
    size += value.byteLength
    if (size > MAX_BYTES) {
      await reader.cancel().catch(() => {})
      throw new ServiceError(`${SERVICE.name}'s answer is larger than ${MAX_BYTES / 1024 / 1024} MiB.`)
    }
    text += decoder.decode(value, { stream: true })
  }
}

function refusal(response: Response, text: string): ServiceError {
  let said = text
  try {
    const body = fields(JSON.parse(text))
    const detail = fields(body.detail).error ?? body.detail ?? body.error ?? body.message ?? body.title
    said = typeof detail === 'string' ? detail : JSON.stringify(detail ?? body)
  } catch {
    // Not JSON: a proxy's page, say. Its beginning is the best there is.
  }
  const after = response.headers.get('retry-after')
  const wait = after ? ` (try again after ${/^\d+$/.test(after) ? `${after} s` : after})` : ''
  const reason = said.trim().slice(0, 500) || response.statusText || 'no reason given'
  const timedOut = response.status === 408 || response.status === 504
  return new ServiceError(`${SERVICE.name} answered ${response.status}: ${reason}${wait}`, timedOut)
}

function parse(text: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ServiceError(`${SERVICE.name}'s answer is not JSON: ${text.trim().slice(0, 200) || 'it is empty'}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceError(`${SERVICE.name}'s answer is not a JSON object: ${text.trim().slice(0, 200)}`)
  }
  return fields(value)
}

/** Does `work` for each item, a few at a time; the results keep the items' order. */
async function forEach<Item, Result>(items: Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index]!)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker))
  return results
}

// ---- What an answer or an argument may hold: anything at all ----

type Fields = Record<string, unknown>

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function list(answer: Fields, name: string): Fields[] {
  const value = answer[name]
  if (!Array.isArray(value)) throw new ServiceError(`${SERVICE.name}'s answer has no list "${name}".`)
  return value.map(fields)
}

/** A whole number between `low` and `high`; what is left out or unreadable is `fallback`. */
function count(value: unknown, low: number, high: number, fallback: number): number {
  const number = typeof value === 'string' && value.trim() ? Number(value) : value
  if (typeof number !== 'number' || Number.isNaN(number)) return fallback
  return Math.min(high, Math.max(low, Math.round(number)))
}
