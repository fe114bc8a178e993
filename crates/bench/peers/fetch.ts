// Peer "fetch", its client: asks for a round on standard input, calls the server with fetch, prints the times.
import { createInterface } from 'node:readline'

type Round = { url: string; args: unknown; calls: number; in_flight: number }

for await (const line of createInterface({ input: process.stdin })) {
  const round = JSON.parse(line) as Round
  const body = JSON.stringify({ args: round.args, agent: 'beeuni', directory: '/workspace' })
  const times: number[] = []
  let left = round.calls
  const worker = async () => {
    while (left-- > 0) {
      const start = Bun.nanoseconds()
      const answer = await fetch(round.url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
      const { output } = (await answer.json()) as { output: string }
      times.push(Bun.nanoseconds() - start)
      if (output === '') throw new Error('an empty answer')
    }
  }
  await Promise.all(Array.from({ length: round.in_flight }, worker))
  process.stdout.write(JSON.stringify(times) + '\n')
}
