import { expect, it } from 'vitest';
import { type ExecResult, type Host, ProgramMissingError } from '../../../../src/host/host.ts';
import { localHost } from '../../../../src/host/local-host.ts';
import { Nft } from '../../../../src/node/nftables/nft.ts';
import { otherProxies } from '../../../../src/node/nftables/other-proxies.ts';

const noChains = '{"nftables":[{"chain":{"family":"ip","table":"filter","name":"KUBE-FIREWALL"}}]}';

/** A machine whose nft lists kubelet's chain, and whose programs of the older iptables end with these codes. */
function machine(legacy: Readonly<Record<string, number>>): Host {
  const exec = (program: string): Promise<ExecResult> => {
    if (program === 'nft') return Promise.resolve({ exitCode: 0, stdout: noChains, stderr: '' });
    const exitCode = legacy[program];
    if (exitCode === undefined) return Promise.reject(new ProgramMissingError(program));
    return Promise.resolve({ exitCode, stdout: '', stderr: '' });
  };
  return { ...localHost, exec };
}

// Machines with nft often lack these programs; the chains that nft shows are in test/network/node-command.test.ts.
it.each([
  ['is missing', {}, []],
  ['has no chain of kube-proxy', { 'iptables-legacy': 1, 'ip6tables-legacy': 1 }, []],
  [
    'has a chain of kube-proxy',
    { 'iptables-legacy': 0, 'ip6tables-legacy': 1 },
    ['the iptables-legacy chain KUBE-SERVICES'],
  ],
  ['has one for IPv6', { 'ip6tables-legacy': 0 }, ['the ip6tables-legacy chain KUBE-SERVICES']],
])('looks for kube-proxy also where the older iptables %s', async (_, legacy, found) => {
  const host = machine(legacy);
  expect(await otherProxies(host, new Nft(host))).toEqual(found);
});
