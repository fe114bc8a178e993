// What the peers do for a call: the same as the bench's own tools, in the same process.
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'

const LINE = `${'x'.repeat(99)}\n`
const MAX = 51_200
let saved = 0

/** The echo, or with `bytes` a large output that is saved to a file and cut. */
export function answer(args: { text?: string; bytes?: number }): string {
  if (args.bytes === undefined) {
    const text = JSON.stringify(args)
    return text.length > 50_000 ? String(text.length) : text
  }
  const text = LINE.repeat(Math.ceil(args.bytes / 100))
  const file = `${tmpdir()}/beeuni-bench-${process.pid}-${saved++ % 8}`
  writeFileSync(file, text, { mode: 0o600 })
  return `${text.slice(0, MAX - 200)}\n\n[cut; the whole is in ${file}]`
}
