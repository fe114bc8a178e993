// Peer "fetch", its server: the same echo behind Bun.serve, as a daemon written in TypeScript would host it.
import { answer } from './echo'

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const body = (await request.json()) as { args: Parameters<typeof answer>[0] }
    return Response.json({ output: answer(body.args) })
  },
})
console.log(server.port)
