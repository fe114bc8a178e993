// A tool of your own. To switch it on, take the `#` off its line under `tools:` in beeuni.yaml, then try it:
//   beeuni tools call lookup_order --args '{"id": "A-1042"}'

const orders: Record<string, { status: string; carrier: string | null }> = {
  'A-1041': { status: 'packed', carrier: null },
  'A-1042': { status: 'shipped', carrier: 'Alpine Parcel' },
}

export default {
  description: 'Look up an order by id. Returns its status and carrier.',
  parameters: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'The order id, e.g. "A-1042"' },
    },
    required: ['id'],
  },
  // A real one asks a service: fetch(url, { signal: context.signal }), with a key from context.env.
  async execute(args: { id?: unknown }) {
    const order = orders[String(args.id)]
    if (!order) throw new Error(`no order has the id ${args.id}; there are ${Object.keys(orders).join(' and ')}`)
    return { id: args.id, ...order }
  },
}
