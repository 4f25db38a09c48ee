import { expect, it } from 'vitest';
import { type ExecResult, type Host, ProgramMissingError } from '../../../../src/host/host.ts';
import { localHost } from '../../../../src/host/local-host.ts';
import { Nft } from '../../../../src/node/nftables/nft.ts';
import { otherProxies } from '../../../../src/node/nftables/other-proxies.ts';

// Machines differ in whether they have the older iptables; the real one is in test/network/other-proxies.test.ts.
it.each([
  [
    'is missing',
    undefined,
    'ip6tables-legacy has a nat table here: there is no program ip6tables-legacy to look into it',
  ],
  [
    'cannot lock',
    {
      exitCode: 4,
      stdout: '',
      stderr: "Fatal: can't open lock file /run/xtables.lock: Read-only file system\n",
    },
    "ip6tables-legacy has a nat table here: Fatal: can't open lock file /run/xtables.lock: Read-only file system",
  ],
])('says that it is unclear where the older iptables %s, and has a nat table', async (_, result, unclear) => {
  const exec = (program: string, [name = '']: readonly string[]): Promise<ExecResult> => {
    if (program === 'nft') return Promise.resolve({ exitCode: 0, stdout: '{"nftables":[]}', stderr: '' });
    if (program === 'cat') {
      return Promise.resolve({
        exitCode: 0,
        stdout: name.includes('ip6_') ? 'filter\nnat\n' : '',
        stderr: '',
      });
    }
    expect(program).toBe('ip6tables-legacy');
    return result === undefined ? Promise.reject(new ProgramMissingError(program)) : Promise.resolve(result);
  };
  const host: Host = { ...localHost, exec };
  expect(await otherProxies(host, new Nft(host))).toEqual({ found: [], unclear: [unclear] });
});
