// Looks an order up in the order service. The key is a secret of the project: it is in context.env, never in process.env.
export default {
  description: 'Look up an order by id. Returns its status and carrier.',
  parameters: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'The order id, e.g. "A-1042"' },
    },
    required: ['id'],
  },
  async execute(args: { id: string }, context: { env: Record<string, string>; signal: AbortSignal }) {
    const response = await fetch(`${context.env.ORDERS_URL}/v1/orders/${encodeURIComponent(args.id)}`, {
      headers: { authorization: `Bearer ${context.env.ORDERS_API_KEY}` },
      signal: context.signal,
    })
    if (!response.ok) throw new Error(`orders API answered ${response.status}: ${await response.text()}`)
    return await response.json()
  },
}
