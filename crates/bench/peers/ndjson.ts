// Peer "ndjson": the same echo behind one JSON object a line on pipes, as many tool protocols do it (MCP over stdio, say).
import { createInterface } from 'node:readline'

import { answer } from './echo'

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line) as { id: number; args: Parameters<typeof answer>[0] }
  process.stdout.write(JSON.stringify({ id: call.id, result: answer(call.args) }) + '\n')
}
