export default {
  description: 'A module that loads.',
  parameters: { type: 'object' },
  execute: () => 'ok',
}
