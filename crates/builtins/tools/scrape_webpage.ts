// Reads web pages as Markdown, through the Beeuni router (Firecrawl's API) or at Firecrawl itself.

const SERVICE = {
  name: 'firecrawl',
  path: '/v1/scrape',
  provider: 'https://api.firecrawl.dev',
  key: 'FIRECRAWL_API_KEY',
  headers: (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` }),
}
/** How long the service may take for a page; we wait a little longer, to hear its own words about it. */
const PAGE_TIMEOUT_MS = 45_000
const TIMEOUT_MS = 60_000
const MAX_BYTES = 16 * 1024 * 1024
const MAX_URLS = 20
const AT_ONCE = 5
const TRIES = 3

export default {
  description:
    'Read one or several web pages and return their main content as Markdown. ' +
    'Separate several addresses with commas.',
  parameters: {
    type: 'object',
    properties: {
      urls: { type: 'string', description: 'One http(s) address, or several separated by commas' },
      include_html: { type: 'boolean', default: false, description: 'Return the HTML too' },
    },
    required: ['urls'],
  },

  async execute(args: Fields, context: Context) {
    const urls = split(Array.isArray(args.urls) ? args.urls.map(String).join(' ') : String(args.urls ?? ''))
    if (!urls.some(isWeb)) throw new Error('No valid URLs provided.')
    if (urls.length > MAX_URLS) throw new Error(`${urls.length} URLs are too many: send at most ${MAX_URLS}.`)
    door(context.env)

    const html = args.include_html === true || args.include_html === 'true'
    const results = await forEach(urls, (url) => read(url, html, context))
    const failed = results.filter((result) => !result.success)
    if (failed.length === results.length) {
      const reasons = failed.map((result) => `${result.url}: ${'error' in result ? result.error : ''}`).join('; ')
      throw new Error(`Failed to scrape all ${results.length} URLs. ${reasons}`)
    }
    if (results.length === 1) return results[0]
    return { total: results.length, successful: results.length - failed.length, failed: failed.length, results }
  },
}

/**
 * The addresses in a comma-separated text, each once. White space always separates, as no address holds any; a comma
 * does only before another http(s) address, as addresses may hold commas. Without a scheme, commas separate too.
 */
function split(urls: string): string[] {
  const parts = urls
    .split(/\s+|,(?=https?:\/\/)/i)
    .flatMap((part) => (/^,*https?:/i.test(part) ? [part] : part.split(',')))
    .map((part) => part.replace(/^,+/, '').replace(/,+$/, ''))
    .filter(Boolean)
    .map((part) => (/^[a-z][a-z0-9+.-]*:/i.test(part) || !part.includes('.') ? part : `https://${part}`))
  return [...new Set(parts)]
}

function isWeb(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url)
}

/** One page's outcome; a failure is part of the result, so that the other pages keep theirs. */
async function read(url: string, html: boolean, context: Context) {
  if (!isWeb(url)) return { url, success: false, error: 'Not an http(s) address.' }
  try {
    const data = fields((await scrape(url, html, context)).data)
    if (typeof data.markdown !== 'string') throw new ServiceError(`${SERVICE.name}'s answer has no text "data.markdown".`)
    const metadata = fields(data.metadata)
    return {
      url,
      success: true,
      title: text(metadata.title),
      content: data.markdown,
      content_length: data.markdown.length,
      ...(html && typeof data.html === 'string' ? { html: data.html } : {}),
      ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    }
  } catch (error) {
    context.signal.throwIfAborted()
    return { url, success: false, error: error instanceof Error ? error.message : String(error) }
  }
}

/** Asks again after a time-out only: any other failure would just fail again, or cost twice. */
async function scrape(url: string, html: boolean, context: Context): Promise<Fields> {
  const request = { url, formats: html ? ['markdown', 'html'] : ['markdown'], timeout: PAGE_TIMEOUT_MS }
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await post(request, context)
      if (answer.success === false) throw new ServiceError(text(answer.error) || `${SERVICE.name} gave no reason.`)
      return answer
    } catch (error) {
      context.signal.throwIfAborted()
      if (attempt === TRIES || !(error instanceof ServiceError && error.timedOut)) throw error
    }
  }
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
