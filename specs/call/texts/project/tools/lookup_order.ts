export default {
  description: 'Look up an order by id.',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  execute(args: { id?: string }) {
    if (!args.id) throw new Error('give the id of an order, such as A-1042')
    return { id: args.id, status: 'shipped' }
  },
}
