// Gives back what it was given; of a long text only its length, so that arguments are measured and not a saved output.
export default {
  description: 'Echo',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  execute(args: { text?: string }) {
    const text = JSON.stringify(args)
    return text.length > 50_000 ? String(text.length) : text
  },
}
