// Gives back what it was given.
export default {
  description: 'Echo',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  execute: (args: unknown) => JSON.stringify(args),
}
