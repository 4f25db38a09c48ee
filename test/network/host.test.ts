import { expect, it } from 'vitest';
import { describeHost } from '../contract/host.contract.ts';
import { missingFor } from './support/gate.ts';
import { startNetwork } from './support/network.ts';

const missing = missingFor('user');

if (missing === '') {
  describeHost('a namespace', async () => {
    const network = await startNetwork('user', { 'node-1': [] });
    return { host: network.at('node-1').machine.host, close: () => network.close() };
  });
}

it.skipIf(missing !== '')('a host that is a namespace sets its own kernel parameters', async () => {
  const network = await startNetwork('user', { 'node-1': [] });
  try {
    const { sysctl } = network.outside.machine.host;
    expect(await sysctl.get('net/ipv4/ip_forward')).toBe('0');
    await sysctl.set('net/ipv4/ip_forward', '1');
    expect(await sysctl.get('net/ipv4/ip_forward')).toBe('1');
  } finally {
    await network.close();
  }
});
