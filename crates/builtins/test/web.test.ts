// The three web tools against a server that speaks the providers' formats, well and badly.
import { describe, expect, test } from 'bun:test'
import image from '../tools/image_search.ts'
import scrape from '../tools/scrape_webpage.ts'
import web from '../tools/web_search.ts'
import { impatient, insteadOf, outcome, provider } from './provider.ts'

const found = {
  query: 'q',
  answer: 'An answer.',
  results: [{ title: 'T', url: 'https://a.example/', content: 'S', score: 0.5, published_date: 'Mon, 1 Jun 2026' }],
  images: [{ url: 'https://a.example/i.png', description: 'D' }, 'https://a.example/j.png'],
  response_time: 1.25,
}
const pictures = {
  images: [
    { title: 'P', imageUrl: 'https://b.example/p.png', imageWidth: 4, imageHeight: 3, link: 'https://b.example/' },
    { title: 'no address' },
  ],
}
const page = (markdown = '# Hi') => ({
  success: true,
  data: { markdown, html: '<h1>Hi</h1>', metadata: { title: 'Hi', statusCode: 200 } },
})

describe('the door', () => {
  const tools = [
    { tool: web, args: { query: 'q' }, service: 'tavily', path: '/search', answer: found, key: 'TAVILY_API_KEY', host: 'https://api.tavily.com', header: 'authorization', proof: 'Bearer own-key' },
    { tool: image, args: { query: 'q' }, service: 'serper', path: '/images', answer: pictures, key: 'SERPER_API_KEY', host: 'https://google.serper.dev', header: 'x-api-key', proof: 'own-key' },
    { tool: scrape, args: { urls: 'https://a.example' }, service: 'firecrawl', path: '/v1/scrape', answer: page(), key: 'FIRECRAWL_API_KEY', host: 'https://api.firecrawl.dev', header: 'authorization', proof: 'Bearer own-key' },
  ]
  describe.each(tools)('of $service', ({ tool, args, service, path, answer, key, host, header, proof }) => {
    const execute = tool.execute as (args: object, context: object) => Promise<unknown>

    test.each(['', '/', '/v1', '/v1/', '//'])('the router address may end in "%s"', async (end) => {
      await using server = provider(() => Response.json(answer))
      const env = { BEEUNI_API_URL: server.url + end, BEEUNI_TOKEN: 'session-token', [key]: 'own-key' }
      await execute(args, { ...server.context, env })
      expect(server.requests[0]!.path).toBe(`/v1/router/${service}${path}`)
      expect(server.requests[0]!.headers.authorization).toBe('Bearer session-token')
      expect(JSON.stringify(server.requests)).not.toContain('own-key')
    })

    test('without a router it asks the provider with its own key', async () => {
      await using server = provider(() => Response.json(answer))
      using _ = insteadOf(host, server.url)
      await execute(args, { ...server.context, env: { [key]: 'own-key', BEEUNI_TOKEN: 'session-token' } })
      expect(server.requests[0]!.path).toBe(path)
      expect(server.requests[0]!.headers[header]).toBe(proof)
      expect(JSON.stringify(server.requests)).not.toContain('session-token')
    })

    test('a missing key is thrown', async () => {
      const signal = new AbortController().signal
      expect(await outcome(execute(args, { env: {}, signal }))).toBe(`error: ${key} is not set.`)
      const env = { BEEUNI_API_URL: 'http://127.0.0.1:9', [key]: 'own-key' }
      expect(await outcome(execute(args, { env, signal }))).toBe('error: BEEUNI_TOKEN is not set.')
    })

    test('a stop ends the request at once, as an abort', async () => {
      const stop = new AbortController()
      const asked = Promise.withResolvers<void>()
      await using server = provider((_, request) => {
        asked.resolve()
        return new Promise((resolve) => request.signal.addEventListener('abort', () => resolve(new Response())))
      })
      const call = execute(args, { ...server.context, signal: stop.signal })
      await asked.promise
      stop.abort()
      await expect(call).rejects.toHaveProperty('name', 'AbortError')
    })
  })
})

/** Every way in which a service fails; what the model reads, in `web_search`'s words. */
const failures: [string, (asked: unknown, request: Request) => Response | Promise<Response>, string][] = [
  ['refused', () => Response.json({ detail: { error: 'Unauthorized: bad key' } }, { status: 401 }), 'tavily answered 401: Unauthorized: bad key'],
  ['problem', () => Response.json({ title: 'Nope', detail: 'no search here' }, { status: 403 }), 'tavily answered 403: no search here'],
  ['busy', () => Response.json({ error: 'slow down' }, { status: 429, headers: { 'retry-after': '30' } }), 'tavily answered 429: slow down (try again after 30 s)'],
  ['a page', () => new Response('<h1>502</h1>', { status: 502 }), 'tavily answered 502: <h1>502</h1>'],
  ['a redirect', () => new Response('', { status: 302, statusText: 'Found', headers: { location: 'http://127.0.0.1:9/' } }), 'tavily answered 302: Found'],
  ['the token', () => Response.json({ error: 'bad token session-token' }, { status: 401 }), 'tavily answered 401: bad token [hidden]'],
  ['no JSON', () => new Response('<html>'), "tavily's answer is not JSON: <html>"],
  ['nothing', () => new Response(''), "tavily's answer is not JSON: it is empty"],
  ['half JSON', () => new Response('{"results": ['), `tavily's answer is not JSON: {"results": [`],
  ['a list', () => Response.json([1]), "tavily's answer is not a JSON object: [1]"],
  ['wrong types', () => Response.json({ results: 'none' }), `tavily's answer has no list "results".`],
  ['far too much', () => new Response(new Uint8Array(9 * 1024 * 1024).fill(32)), "tavily's answer is larger than 8 MiB."],
  ['a gzip bomb', () => new Response(Bun.gzipSync(new Uint8Array(64 * 1024 * 1024)), { headers: { 'content-encoding': 'gzip' } }), "tavily's answer is larger than 8 MiB."],
]

test.each(failures)('web_search, when the service sends %s', async (_, answer, error) => {
  await using server = provider(answer)
  expect(await web.execute({ query: 'q' }, server.context)).toEqual({ query: 'q', success: false, error })
})

test('an answer that breaks off', async () => {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"results":')
        socket.end()
      },
    },
  })
  const env = { BEEUNI_API_URL: `http://127.0.0.1:${server.port}`, BEEUNI_TOKEN: 'session-token' }
  const got = await outcome(web.execute({ query: 'q' }, { env, signal: new AbortController().signal }))
  server.stop(true)
  expect(got.success).toBe(false)
  expect(got.error).toMatch(/^tavily('s answer broke off| could not be reached|'s answer is not JSON): /)
})

test('no server there', async () => {
  const env = { BEEUNI_API_URL: 'http://127.0.0.1:1', BEEUNI_TOKEN: 'session-token' }
  const got = await outcome(web.execute({ query: 'q' }, { env, signal: new AbortController().signal }))
  expect(got.error).toStartWith('tavily could not be reached: ')
})

describe('web_search', () => {
  test('one query', async () => {
    await using server = provider(() => Response.json(found))
    expect(await web.execute({ query: ' q ', num_results: '3', topic: 'news', search_depth: 'advanced' }, server.context)).toEqual({
      query: 'q',
      success: true,
      answer: 'An answer.',
      results: [{ title: 'T', url: 'https://a.example/', snippet: 'S', score: 0.5, published_date: 'Mon, 1 Jun 2026' }],
      images: [{ url: 'https://a.example/i.png', description: 'D' }, { url: 'https://a.example/j.png', description: null }],
      response_time_ms: 1250,
    })
    expect(server.requests[0]!.body).toEqual({
      query: 'q', max_results: 3, topic: 'news', search_depth: 'advanced',
      include_answer: true, include_images: true, include_image_descriptions: true,
    })
  })

  test('a thin answer, and items of wrong types', async () => {
    await using server = provider(() => Response.json({ results: [{ title: 1, score: '1' }, null], images: [null, {}] }))
    const got: any = await web.execute({ query: 'q' }, server.context)
    const empty = { title: '', url: '', snippet: '', score: null, published_date: null }
    expect(got).toMatchObject({ success: true, answer: null, results: [empty, empty], images: [] })
    expect(got.response_time_ms).toBeInteger()
  })

  test('several queries keep their order, and one failure stays one', async () => {
    await using server = provider(({ body }) =>
      body.query === 'b' ? Response.json({ error: 'no' }, { status: 500 }) : Response.json(found))
    const got: any = await web.execute({ query: 'a ||| b |||  ||| c' }, server.context)
    expect(got).toMatchObject({
      batch_mode: true,
      total_queries: 3,
      results: [{ query: 'a', success: true }, { query: 'b', success: false, error: 'tavily answered 500: no' }, { query: 'c', success: true }],
    })
  })

  test.each([
    [{}, 'error: The query is empty.'],
    [{ query: ' ||| ' }, 'error: The query is empty.'],
    [{ query: null }, 'error: The query is empty.'],
    [{ query: 'q|||'.repeat(21) }, 'error: 21 queries are too many: send at most 20.'],
    [{ query: 'q', topic: 'sport' }, "error: 'topic' must be one of general, news, finance; got sport."],
    [{ query: 'q', search_depth: 'deep' }, "error: 'search_depth' must be one of basic, advanced; got deep."],
  ])('refuses %j', async (args, error) => {
    await using server = provider(() => Response.json(found))
    expect(await outcome(web.execute(args, server.context))).toBe(error)
    expect(server.requests).toEqual([])
  })

  test.each([[0, 1], [99, 20], ['7', 7], [2.4, 2], [null, 5], ['', 5], ['x', 5], [{}, 5]])('num_results %j asks for %d', async (given, sent) => {
    await using server = provider(() => Response.json(found))
    await web.execute({ query: 'q', num_results: given }, server.context)
    expect(server.requests[0]!.body.max_results).toBe(sent)
  })

  test('a service that never answers', async () => {
    using _ = impatient()
    await using server = provider(() => new Promise<Response>(() => {}))
    expect(await web.execute({ query: 'q' }, server.context)).toEqual({
      query: 'q', success: false, error: 'tavily did not answer within 60 s.',
    })
    expect(server.requests.length).toBe(1)
  })
})

describe('image_search', () => {
  const images = [{ title: 'P', url: 'https://b.example/p.png', source: 'https://b.example/', width: 4, height: 3 }]

  test('one query', async () => {
    await using server = provider(() => Response.json(pictures))
    expect(await image.execute({ query: 'q' }, server.context)).toEqual({ query: 'q', total: 1, images })
    expect(server.requests[0]!.body).toEqual({ q: 'q', num: 12 })
  })

  test('several queries, one failing', async () => {
    await using server = provider(({ body }) =>
      body.q === 'b' ? Response.json({ message: 'Not enough credits' }, { status: 400 }) : Response.json(pictures))
    expect(await image.execute({ query: 'a|||b' }, server.context)).toEqual({
      batch_mode: true,
      results: [
        { query: 'a', total: 1, images },
        { query: 'b', total: 0, images: [], error: 'serper answered 400: Not enough credits' },
      ],
    })
  })

  test.each([
    [{ query: '' }, 'error: The query is empty.'],
    [{ query: 'q' }, `error: serper's answer has no list "images".`],
  ])('fails for %j', async (args, error) => {
    await using server = provider(() => Response.json({}))
    expect(await outcome(image.execute(args, server.context))).toBe(error)
  })
})

describe('scrape_webpage', () => {
  test.each([
    ['https://a.example/x,y,z', ['https://a.example/x,y,z']],
    ['https://a.example/1,2 , https://b.example/?q=3,4', ['https://a.example/1,2', 'https://b.example/?q=3,4']],
    ['https://a.example/1,https://b.example/2,', ['https://a.example/1', 'https://b.example/2']],
    ['https://a.example, https://a.example', ['https://a.example']],
    ['a.example,b.example\nHTTP://c.example', ['https://a.example', 'https://b.example', 'HTTP://c.example']],
    [['https://a.example', 'https://b.example'], ['https://a.example', 'https://b.example']],
  ])('%j', async (urls, asked) => {
    await using server = provider(() => Response.json(page()))
    await scrape.execute({ urls }, server.context)
    expect(server.requests.map((request) => request.body.url).sort()).toEqual([...asked].sort())
  })

  test('one page, with and without HTML', async () => {
    await using server = provider(() => Response.json(page()))
    const plain = { url: 'https://a.example', success: true, title: 'Hi', content: '# Hi', content_length: 4, metadata: { title: 'Hi', statusCode: 200 } }
    expect(await scrape.execute({ urls: 'https://a.example' }, server.context)).toEqual(plain)
    expect(await scrape.execute({ urls: 'https://a.example', include_html: true }, server.context)).toEqual({ ...plain, html: '<h1>Hi</h1>' })
    expect(server.requests.map((request) => request.body.formats)).toEqual([['markdown'], ['markdown', 'html']])
  })

  test('several pages, some failing', async () => {
    await using server = provider(({ body }) =>
      body.url.includes('bad') ? Response.json({ success: false, error: 'blocked' }) : Response.json(page()))
    expect(await scrape.execute({ urls: 'https://a.example,https://bad.example ftp://c.example' }, server.context)).toMatchObject({
      total: 3,
      successful: 1,
      failed: 2,
      results: [
        { url: 'https://a.example', success: true },
        { url: 'https://bad.example', success: false, error: 'blocked' },
        { url: 'ftp://c.example', success: false, error: 'Not an http(s) address.' },
      ],
    })
  })

  test.each([
    [{}, 'error: No valid URLs provided.'],
    [{ urls: ' , ' }, 'error: No valid URLs provided.'],
    [{ urls: 'nonsense' }, 'error: No valid URLs provided.'],
    [{ urls: 'file:///etc/passwd' }, 'error: No valid URLs provided.'],
    [{ urls: 'https://' }, 'error: No valid URLs provided.'],
    [{ urls: 'https://a.example,https://b.example' }, 'error: Failed to scrape all 2 URLs. https://a.example: no luck; https://b.example: no luck'],
  ])('fails for %j', async (args, error) => {
    await using server = provider(() => Response.json({ success: false, error: 'no luck' }))
    expect(await outcome(scrape.execute(args, server.context))).toBe(error)
  })

  test.each([[408, 3], [504, 3], [500, 1], [429, 1], [402, 1]])('status %d is asked %d times', async (status, times) => {
    await using server = provider(() => Response.json({ success: false, error: 'late' }, { status }))
    expect(await outcome(scrape.execute({ urls: 'https://a.example' }, server.context))).toBe(
      `error: Failed to scrape all 1 URLs. https://a.example: firecrawl answered ${status}: late`)
    expect(server.requests.length).toBe(times)
  })

  test('a time-out that passes', async () => {
    using _ = impatient()
    let asked = 0
    await using server = provider(() => (++asked < 3 ? new Promise<Response>(() => {}) : Response.json(page())))
    expect(await scrape.execute({ urls: 'https://a.example' }, server.context)).toMatchObject({ success: true })
  })
})
