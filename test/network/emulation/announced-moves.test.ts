import { spawnSync, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { missingFor } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = missingFor('user');
const manifest = join(import.meta.dirname, '../../../deploy/examples/quickstart.yaml');
const nodes = ['node-1', 'node-2', 'node-3'];

describe.skipIf(missing !== '')(
  `an address of \`up\` on its LAN${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    const home = new UpHome('user');
    let up: ChildProcess;
    let address = '';

    beforeAll(async () => {
      up = await home.start(['--nodes', String(nodes.length), '--apply', manifest]);
      await vi.waitFor(
        () => {
          address = kubectl('get', 'service', '-n', 'shop', 'storefront', ipPath);
          expect(address).not.toBe('');
        },
        { timeout: 60_000 },
      );
    });
    afterAll(async () => {
      await end(up, 'SIGTERM');
      home.remove();
    });

    const ipPath = '-o=jsonpath={.status.loadBalancer.ingress[0].ip}';

    function kubectl(...args: readonly string[]): string {
      const { status, stdout, stderr } = spawnSync('kubectl', args, {
        encoding: 'utf8',
        env: home.environment,
      });
      expect(status, stderr).toBe(0);
      return stdout;
    }

    function json(place: readonly string[], ...words: readonly string[]): readonly unknown[] {
      const { stdout } = home.run(place, 'ip', '-json', ...words);
      return listAt({ list: JSON.parse(stdout || '[]') as unknown }, 'list');
    }

    /** The node that has answered the client's ARP question; undefined where curl gets no answer. */
    function owner(): string | undefined {
      const url = `http://${address}/hostname`;
      const { stdout } = home.run(['--outside'], 'curl', '-s', '--max-time', '5', url);
      if (!stdout.startsWith('storefront-')) return undefined;
      const mac = textAt(json(['--outside'], 'neighbour', 'show', 'to', address)[0], 'lladdr');
      return nodes.find((node) => {
        const links = json(['--node', node], 'link', 'show');
        return links.some((link) => textAt(link, 'address') === mac);
      });
    }

    async function ownerNow(): Promise<string> {
      let found: string | undefined;
      await expect.poll(() => (found = owner())).toBeDefined();
      return found ?? '';
    }

    it.each([
      ['is cordoned', (node: string) => kubectl('cordon', node), (node: string) => kubectl('uncordon', node)],
      [
        'is drained',
        (node: string) => kubectl('drain', node, '--force', '--ignore-daemonsets', '--delete-emptydir-data'),
        (node: string) => kubectl('uncordon', node),
      ],
      [
        'stops',
        (node: string) => kubectl('annotate', 'node', node, 'servicenet.dev/state=down'),
        (node: string) => kubectl('annotate', 'node', node, 'servicenet.dev/state-'),
      ],
    ])('moves when its node %s, and comes back with it', async (_, leave, comeBack) => {
      const first = await ownerNow();
      leave(first);
      await expect.poll(owner).toSatisfy((node) => node !== undefined && node !== first);
      const next = await ownerNow();
      const condition = '-o=jsonpath={.status.conditions[?(@.type=="servicenet.dev/Announced")].message}';
      await expect
        .poll(() => kubectl('get', 'service', '-n', 'shop', 'storefront', condition))
        .toContain(`${address} by ${next} `);
      expect(home.servicenet('pools').stdout).toContain(next);
      comeBack(first);
      await expect.poll(owner).toBe(first);
    });
  },
);
