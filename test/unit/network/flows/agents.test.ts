import { expect, test } from 'vitest';
import { agentName, readAgent } from '../../../../src/network/flows/agents.ts';
import { isDNS1123Subdomain } from '../../../../src/objects/names.ts';

test.each(['node-1', 'a'.repeat(253), `${'a'.repeat(16)}.${'b'.repeat(236)}`])(
  'the ConfigMap of a node has a name that is valid: %s',
  (node) => {
    expect(isDNS1123Subdomain(agentName(node))).toEqual([]);
  },
);

const data = { node: 'node-1', addresses: '192.0.2.11,2001:DB8::b', port: '10263', authority: 'PEM' };

test('an agent is read from it', () => {
  expect(readAgent({ data })).toEqual({
    ...{ node: 'node-1', addresses: ['192.0.2.11', '2001:db8::b'], port: 10_263, authority: 'PEM' },
  });
});

test.each([
  { node: '' },
  { addresses: 'node-1.example' },
  { port: '0' },
  { port: '65536' },
  { authority: '' },
])('what says nothing of use is none: %j', (change) => {
  expect(readAgent({ data: { ...data, ...change } })).toBeUndefined();
});
