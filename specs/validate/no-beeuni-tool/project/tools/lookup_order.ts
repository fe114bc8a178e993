export default {
  description: 'A module that loads.',
  parameters: { type: 'object', properties: {} },
  execute: () => 'ok',
}
