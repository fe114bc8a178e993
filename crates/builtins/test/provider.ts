// A server in the provider's place: it notes what it is asked and answers as it is told.

export type Asked = { path: string; headers: Record<string, string>; body: Record<string, any> }

export function provider(answer: (asked: Asked, request: Request) => Response | Promise<Response>) {
  const requests: Asked[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url)
      const asked = {
        path: url.pathname,
        headers: Object.fromEntries(request.headers),
        body: JSON.parse((await request.text()) || '{}'),
      }
      requests.push(asked)
      return await answer(asked, request)
    },
  })
  return {
    requests,
    url: `http://127.0.0.1:${server.port}`,
    context: {
      env: { BEEUNI_API_URL: `http://127.0.0.1:${server.port}`, BEEUNI_TOKEN: 'session-token' } as Record<string, string>,
      signal: new AbortController().signal,
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}

/** Sends what would go to `host` to `url` instead, so that a provider's own address can be tested without a network. */
export function insteadOf(host: string, url: string): Disposable {
  const real = globalThis.fetch
  globalThis.fetch = Object.assign(
    (input: Parameters<typeof fetch>[0], init?: RequestInit) => real(String(input).replace(host, url), init),
    { preconnect: real.preconnect },
  )
  return {
    [Symbol.dispose]() {
      globalThis.fetch = real
    },
  }
}

/** Makes every time-out as short as a test wants it. */
export function impatient(): Disposable {
  const real = AbortSignal.timeout
  AbortSignal.timeout = () => real.call(AbortSignal, 30)
  return {
    [Symbol.dispose]() {
      AbortSignal.timeout = real
    },
  }
}

/** What a call ends in: its output, or its error's message. */
export async function outcome(call: Promise<unknown>): Promise<any> {
  try {
    return await call
  } catch (error) {
    return `error: ${error instanceof Error ? error.message : error}`
  }
}
