import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { NamespaceHost } from '../../../src/emulation/namespaces.ts';
import { NetworkNamespace } from '../../../src/emulation/namespaces.ts';
import { describeHost } from '../../contract/host.contract.ts';
import { makers } from '../support/gate.ts';
import { Sandbox } from '../support/sandbox.ts';

const inside = 'SERVICENET_TEST_MACHINE';

// A process can only enter namespaces of its own user namespace: this file runs itself again, inside.
if (process.env[inside] === undefined) {
  it.for(makers)('is a Host, in namespaces of $maker', async ({ maker, missing }, { skip }) => {
    skip(missing !== '', `missing: ${missing}`);
    const sandbox = await Sandbox.open(maker);
    try {
      await sandbox.script(['ip netns add machine', 'ip -n machine link set lo up']);
      const [program = '', ...args] = sandbox.enter();
      // The user may not write here, and so cannot compile the configuration first.
      const vitest = [
        ...['node_modules/vitest/vitest.mjs', 'run'],
        ...['--config', 'vitest.network.config.ts', '--configLoader', 'native'],
      ];
      // A mount namespace begins at its root.
      const there = ['sh', '-c', 'cd "$0" && exec "$@"', process.cwd()];
      const words = [...args, ...there, process.execPath, ...vitest, import.meta.filename];
      const result = spawnSync(program, words, {
        encoding: 'utf8',
        env: { ...process.env, [inside]: 'machine', HOME: '/run', TMPDIR: '/run' },
      });
      expect(result.status, `${result.stdout}\n${result.stderr}`).toBe(0);
    } finally {
      await sandbox.close();
    }
  });
} else {
  const open = () => {
    const namespace = new NetworkNamespace('machine');
    return { namespace, host: new NamespaceHost(namespace) };
  };

  describeHost('a network namespace', () => {
    const { namespace, host } = open();
    const close = (): Promise<void> => {
      namespace.close();
      return Promise.resolve();
    };
    return Promise.resolve({ host, close });
  });

  it('is in another network than the process, which stays where it was', async () => {
    const { namespace, host } = open();
    const links = (words: readonly string[]): string =>
      spawnSync(words[0] ?? '', words.slice(1), { encoding: 'utf8' }).stdout;
    await host.exec('ip', ['link', 'add', 'only-here', 'type', 'bridge']);
    await host.sysctl.set('net/ipv4/ip_forward', '1');
    expect(await host.sysctl.get('net/ipv4/ip_forward')).toBe('1');
    expect((await host.exec('ip', ['-br', 'link'])).stdout).toContain('only-here');
    expect(links(['ip', '-br', 'link'])).not.toContain('only-here');
    expect(links(['cat', '/proc/sys/net/ipv4/ip_forward']).trim()).toBe('0');
    namespace.close();
  });
}
