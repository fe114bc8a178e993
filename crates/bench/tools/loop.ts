// Turns for ever when told so: no signal reaches it.
export default {
  description: 'Loops',
  parameters: { type: 'object', properties: { forever: { type: 'boolean' } } },
  execute(args: { forever?: boolean }) {
    while (args.forever) {}
    return 'ok'
  },
}
