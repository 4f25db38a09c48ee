import { expect, it } from 'vitest';
import { Nft } from '../../src/node/nftables/nft.ts';
import { otherProxies } from '../../src/node/nftables/other-proxies.ts';
import { missingFor, missingProgram } from './support/gate.ts';
import { startNetwork } from './support/network.ts';

// Its lock belongs to root.
const missing = [missingFor('root'), missingProgram('iptables-legacy', 'iptables')]
  .filter((what) => what !== '')
  .join(', ');
const lacks = missing === '' ? '' : ` (missing: ${missing})`;

it.skipIf(missing !== '')(
  `finds the chains of kube-proxy in the older iptables, and makes no table by looking${lacks}`,
  async () => {
    const network = await startNetwork('root', { 'node-1': [] });
    try {
      const { host } = network.at('node-1').machine;
      const look = (): Promise<unknown> => otherProxies(host, new Nft(host));
      const tables = async (): Promise<string> =>
        (await host.exec('cat', ['/proc/net/ip_tables_names', '/proc/net/ip6_tables_names'])).stdout;
      const run = async (program: string, ...args: readonly string[]): Promise<void> => {
        const { exitCode, stderr } = await host.exec(program, ['-t', 'nat', ...args]);
        expect(exitCode, stderr).toBe(0);
      };
      const nothing = { found: [], unclear: [] };
      expect(await look()).toEqual(nothing);
      expect(await tables()).toBe('');
      // As kubelet's.
      await run('iptables-legacy', '-N', 'KUBE-MARK-MASQ');
      expect(await look()).toEqual(nothing);
      expect(await tables()).toBe('nat\n');
      await run('iptables-legacy', '-N', 'KUBE-SERVICES');
      await run('ip6tables-legacy', '-N', 'KUBE-SERVICES');
      expect(await look()).toEqual({
        found: ['the iptables-legacy chain KUBE-SERVICES', 'the ip6tables-legacy chain KUBE-SERVICES'],
        unclear: [],
      });
    } finally {
      await network.close();
    }
  },
);
