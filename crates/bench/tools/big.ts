// A large output: more than a model may see, so that the whole is saved to a file.
const line = `${'x'.repeat(99)}\n`

export default {
  description: 'Answers with `bytes` bytes in lines',
  parameters: { type: 'object', properties: { bytes: { type: 'number' } } },
  execute: (args: { bytes: number }) => line.repeat(Math.ceil(args.bytes / 100)),
}
