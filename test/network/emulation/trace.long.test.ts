import { type ChildProcess, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAt, recordAt } from '../../../src/objects/json.ts';
import { missingFor } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = missingFor('user');
const manifest = join(import.meta.dirname, '../../../deploy/examples/quickstart.yaml');

describe.skipIf(missing !== '')(
  `servicenet trace --check${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    const home = new UpHome('user');
    let up: ChildProcess;
    beforeAll(async () => {
      up = await home.start(['--apply', manifest]);
      for (const app of ['cart', 'catalog']) {
        const wait = ['-n', 'shop', 'rollout', 'status', `deployment/${app}`, '--timeout=60s'];
        expect(spawnSync('kubectl', wait, { env: home.environment }).status).toBe(0);
      }
    });
    afterAll(async () => {
      await end(up, 'SIGTERM');
      home.remove();
    });

    it('says of a machine outside what happens to its packets', () => {
      const trace = (destination: string) => {
        const checked = home.servicenet('trace', 'outside', destination, '--check', '-o', 'json');
        return { status: checked.status, report: JSON.parse(checked.stdout) as unknown };
      };
      expect(trace('svc/shop/storefront:80')).toMatchObject({
        status: 0,
        report: { traces: [{ packet: { outcome: 'connected', agrees: true } }] },
      });
      expect(trace('svc/shop/catalog:80')).toMatchObject({ status: 1, report: { reachable: false } });
      for (const inside of ['10.96.0.1:443']) {
        expect(trace(inside)).toMatchObject({
          status: 1,
          report: { traces: [{ packet: { agrees: true } }] },
        });
      }
    });

    it('opens a real connection, and says where that differs from the plan', async () => {
      const kubectl = (input: string, ...args: string[]): string =>
        spawnSync('kubectl', ['-n', 'shop', ...args], { encoding: 'utf8', env: home.environment, input })
          .stdout;
      const target = '-o=jsonpath={.items[0].metadata.name} {.items[0].spec.nodeName}';
      const [catalog = '', node = ''] = kubectl('', 'get', 'pods', '-l', 'app=catalog', target).split(' ');
      const [cart = ''] = kubectl('', 'get', 'pods', '-l', 'app=cart', target).split(' ');
      const trace = (destination: string) => {
        const checked = home.servicenet('trace', `pod/shop/${cart}`, destination, '--check', '-o', 'json');
        const report: unknown = JSON.parse(checked.stdout);
        return { status: checked.status, packet: recordAt(listAt(report, 'traces')[0], 'packet') };
      };
      const reached = { outcome: 'connected', agrees: true };
      expect(trace('svc/shop/catalog:80')).toMatchObject({ status: 0, packet: reached });
      expect(trace(`pod/shop/${cart}:81`)).toMatchObject({ packet: { outcome: 'refused' } });
      const policy = {
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'none' } },
        spec: { podSelector: { matchLabels: { app: 'catalog' } }, ingress: [] },
      };
      kubectl(JSON.stringify(policy), 'apply', '-f', '-');
      const denied = { status: 1, packet: { agrees: true, outcome: 'dropped' } };
      await expect.poll(() => trace(`pod/shop/${catalog}:8080`)).toMatchObject(denied);
      kubectl('', 'delete', 'networkpolicy', 'none');
      await expect
        .poll(() => trace(`pod/shop/${catalog}:8080`))
        .toMatchObject({ status: 0, packet: reached });
      // What no object shows. A table of ours would be put right at once.
      const drop = 'add table ip x; add chain ip x c { type filter hook forward priority 0; policy drop; }';
      expect(home.run(['--node', node], 'nft', drop).stderr).toBe('');
      expect(trace(`pod/shop/${catalog}:8080`)).toMatchObject({
        status: 2,
        packet: { outcome: 'dropped', agrees: false },
      });
      expect(home.run(['--node', node], 'nft', 'delete', 'table', 'ip', 'x').stderr).toBe('');
    });

    it('says of a host of an Ingress what its router and the backends do', async () => {
      const kubectl = (input: object, ...args: string[]): void => {
        const options = { encoding: 'utf8', env: home.environment, input: JSON.stringify(input) } as const;
        const { status, stderr } = spawnSync('kubectl', ['-n', 'shop', ...args], options);
        expect(status, stderr).toBe(0);
      };
      const backend = { service: { name: 'catalog', port: { number: 80 } } };
      const rules = [
        { host: 'a.test', http: { paths: [{ path: '/shop', pathType: 'Prefix', backend }] } },
        {
          host: 'b.test',
          http: {
            paths: [
              {
                path: '/',
                pathType: 'Prefix',
                backend: { service: { name: 'nobody', port: { number: 80 } } },
              },
            ],
          },
        },
      ];
      const meta = { apiVersion: 'networking.k8s.io/v1', metadata: { name: 'routed' } };
      kubectl(
        { ...meta, kind: 'Ingress', spec: { ingressClassName: 'servicenet', rules } },
        ...['apply', '-f', '-'],
      );
      const address = (): string =>
        spawnSync(
          'kubectl',
          ['-n', 'shop', 'get', 'ingress', 'routed', '-o=jsonpath={.status.loadBalancer.ingress[0].ip}'],
          { encoding: 'utf8', env: home.environment },
        ).stdout;
      await expect.poll(address, { timeout: 60_000 }).not.toBe('');
      const isGood = (place: readonly string[], host: string, path: string): boolean => {
        const format = ['-s', '-o', '/dev/null', '-w', '%{http_code}', '--max-time', '5'];
        const url = `http://${address()}${path}`;
        return home.run(place, 'curl', ...format, '-H', `Host: ${host}`, url).stdout === '200';
      };
      const compare = async (host: string, path: string, isReachable: boolean): Promise<void> => {
        const pod = ['--pod', 'deploy/shop/cart'];
        for (const [place, source] of [
          [['--outside'], 'outside'],
          [pod, 'deploy/shop/cart'],
        ] as const) {
          const seen = (): unknown => {
            const { status, stdout, stderr } = home.servicenet('trace', source, `http://${host}${path}`);
            return [
              status,
              isGood(place, host, path),
              stderr,
              status === (isReachable ? 0 : 1) ? '' : stdout,
            ];
          };
          await expect.poll(seen, { timeout: 60_000 }).toEqual([isReachable ? 0 : 1, isReachable, '', '']);
        }
      };
      await compare('a.test', '/shop', true);
      await compare('a.test', '/other', false);
      await compare('b.test', '/', false);
      await compare('none.test', '/', false);
      const policy = {
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'catalog' } },
        spec: { podSelector: { matchLabels: { app: 'catalog' } }, ingress: [] },
      };
      kubectl(policy, 'apply', '-f', '-');
      await compare('a.test', '/shop', false);
      kubectl({}, 'delete', 'networkpolicy', 'catalog');
      await compare('a.test', '/shop', true);
    });
  },
);
