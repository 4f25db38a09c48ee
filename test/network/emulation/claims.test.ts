import { type ChildProcess, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makers } from '../support/gate.ts';
import { end, UpHome } from '../support/up-process.ts';

/** The volumes of claims, and what of the machine they may show. */

/** The text of what is planted outside of `--host-path-root`, and of what is planted in it. */
const secret = `servicenet-secret-${process.pid}`;
const shown = `servicenet-shown-${process.pid}`;
const root = '/usr/share/nginx/html';

for (const { maker, missing } of makers) {
  for (const containers of ['auto', 'off'] as const) {
    const lacks = missing === '' ? '' : ` (missing: ${missing})`;
    describe.skipIf(missing !== '')(`claims of ${maker}, with --containers=${containers}${lacks}`, () => {
      const home = new UpHome(maker);
      const data = join(home.folder, 'data');
      const volumes = join(data, 'volumes');
      const outside = `/var/tmp/servicenet-outside-${process.pid}-${maker}-${containers}`;
      const inside = `/var/tmp/servicenet-inside-${process.pid}-${maker}-${containers}`;
      let up: ChildProcess | undefined;

      const start = async (): Promise<void> => {
        const flags = [`--containers=${containers}`, '--host-path-root', inside, '--data-dir', data];
        up = await home.start(['--nodes=1', ...flags]);
      };
      const stop = async (): Promise<void> => {
        if (up !== undefined) await end(up, 'SIGTERM');
        up = undefined;
      };
      beforeAll(async () => {
        for (const [folder, text] of [
          [outside, secret],
          [inside, shown],
        ] as const) {
          mkdirSync(join(folder, 'sub'), { recursive: true });
          for (const at of ['index.html', 'page', 'sub/page', 'sub/index.html']) {
            writeFileSync(join(folder, at), text);
          }
          for (const at of [folder, join(folder, 'sub')]) chmodSync(at, 0o777);
        }
        await start();
      });
      afterAll(async () => {
        await stop();
        home.remove();
        for (const folder of [outside, inside]) rmSync(folder, { recursive: true, force: true });
      });

      const kubectl = (args: readonly string[], input = ''): string => {
        const options = { encoding: 'utf8', env: home.environment, input } as const;
        const { stdout, stderr, status } = spawnSync('kubectl', args, options);
        if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
        return stdout;
      };
      const apply = (...objects: readonly object[]): void => {
        const items = objects.map((object) => ({ apiVersion: 'v1', ...object }));
        kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
      };
      const claim = (name: string, spec: object = {}): object => ({
        ...{ kind: 'PersistentVolumeClaim', metadata: { name } },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
      });
      /** A claim with a volume made by hand. */
      const bound = (name: string, source: object): readonly object[] => [
        {
          ...{ kind: 'PersistentVolume', metadata: { name } },
          spec: {
            ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'manual' },
            ...source,
          },
        },
        claim(name, { storageClassName: 'manual', volumeName: name }),
      ];
      const pod = (
        name: string,
        claimName: string,
        mount: object,
        { container = {}, spec = {} }: { container?: object; spec?: object } = {},
      ): object => ({
        ...{ kind: 'Pod', metadata: { name } },
        spec: {
          terminationGracePeriodSeconds: 0,
          volumes: [
            { name: 'v', persistentVolumeClaim: { claimName } },
            { name: 'own', emptyDir: {} },
          ],
          containers: [
            { name: 'main', image: 'nginx', volumeMounts: [{ name: 'v', ...mount }], ...container },
          ],
          ...spec,
        },
      });
      const ready = (name: string): string =>
        kubectl(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s']);
      /** What these Pods answer at these paths, each with its status and its URL in a line. */
      const answersOf = (names: readonly string[], paths: readonly string[]): string => {
        const addresses = names.map((name) =>
          kubectl(['get', 'pod', name, '-o', 'jsonpath={.status.podIP}']),
        );
        const urls = addresses.flatMap((address) => paths.map((path) => `http://${address}${path}`));
        const flags = ['-s', '--max-time', '5', '--path-as-is', '-w', '\\n%{http_code} %{url}\\n'];
        return home.run([], 'curl', ...flags, ...urls).stdout;
      };
      const answer = (name: string): string => answersOf([name], ['/']).split('\n')[0] ?? '';
      const volumeOf = (name: string): string =>
        kubectl(['get', 'pvc', name, '-o', 'jsonpath={.spec.volumeName}']);

      it('answer clients with no file of the machine, whatever way leads to it', () => {
        const nodeAffinity = {
          required: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/os', operator: 'Exists' }] }],
          },
        };
        const sources = {
          'out-host': { hostPath: { path: outside } },
          'out-local': { local: { path: outside }, nodeAffinity },
          'in-host': { hostPath: { path: inside } },
          'in-local': { local: { path: inside }, nodeAffinity },
        };
        const nested = {
          container: {
            volumeMounts: [
              { name: 'own', mountPath: root },
              { name: 'v', mountPath: `${root}/nested` },
            ],
          },
        };
        const pods: string[] = [];
        for (const [name, source] of Object.entries(sources)) {
          const made = {
            [`${name}-root`]: pod(`${name}-root`, name, { mountPath: root }),
            [`${name}-above`]: pod(`${name}-above`, name, { mountPath: '/usr/share/nginx' }),
            [`${name}-sub`]: pod(`${name}-sub`, name, { mountPath: root, subPath: 'sub' }),
            [`${name}-file`]: pod(`${name}-file`, name, { mountPath: `${root}/index.html`, subPath: 'page' }),
            [`${name}-nested`]: pod(`${name}-nested`, name, {}, nested),
          };
          apply(...bound(name, source), ...Object.values(made));
          pods.push(...Object.keys(made));
        }
        kubectl(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s']);
        const paths = [
          '/',
          '/page',
          '/sub/page',
          '/html/page',
          '/nested/',
          '/nested/page',
          '/nested/sub/page',
        ];
        const said = answersOf(pods, paths);
        expect(said.match(/^[2-5]\d\d http:/gm)).toHaveLength(pods.length * paths.length);
        expect(said).not.toContain(secret);
        expect(said).not.toContain(shown);
      });

      it('show programs what --host-path-root names, and nothing else', async () => {
        const reader = (name: string, claimName: string): object =>
          pod(
            name,
            claimName,
            { mountPath: '/v' },
            {
              container: { image: 'busybox', command: ['sleep', '1000'] },
              spec: { restartPolicy: 'Never' },
            },
          );
        apply(
          ...bound('all', { hostPath: { path: '/' } }),
          ...bound('proc', { hostPath: { path: '/proc' } }),
          ...['out-host', 'out-local', 'all', 'proc', 'in-host'].map((name) => reader(`read-${name}`, name)),
        );
        const said = async (name: string, words: readonly string[]): Promise<string> => {
          const { stdout, stderr } = spawnSync('kubectl', ['exec', name, '--', ...words], {
            ...{ encoding: 'utf8', env: home.environment },
          });
          return await Promise.resolve(stdout + stderr);
        };
        for (const name of ['read-out-host', 'read-out-local', 'read-all', 'read-proc']) {
          const message = 'jsonpath={.status.containerStatuses[0].state.waiting.message}';
          if (containers === 'auto') {
            await expect
              .poll(() => kubectl(['get', 'pod', name, '-o', message]), { timeout: 60_000 })
              .toMatch(/--host-path-root|not shared/);
          }
          for (const path of ['/v/page', `/v${outside}/page`, '/v/self/environ']) {
            expect(await said(name, ['cat', path]), `${name} ${path}`).not.toMatch(/servicenet-secret|HOME=/);
          }
        }
        ready('read-in-host');
        await expect.poll(() => said('read-in-host', ['cat', '/v/page'])).toBe(shown);
        if (containers === 'off') return;
        expect(await said('read-in-host', ['sh', '-c', 'echo changed >/v/page'])).toMatch(/Read-only/i);
      });

      it('of kind ephemeral have claims of their own, which end with their Pods', async () => {
        const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
        const volumeClaimTemplate = { metadata: { labels: { of: 'test' } }, spec };
        const volumes = [{ name: 'v', ephemeral: { volumeClaimTemplate } }];
        const own = pod('scratch', '', { mountPath: root }, { spec: { volumes } });
        apply(own);
        ready('scratch');
        const got = (what: string): string => kubectl(['get', 'pvc', '-l', 'of=test', '-o', what]);
        const fields = ['.metadata.name', '.status.phase', '.metadata.ownerReferences[0].name'];
        const each = fields.map((field) => `{.items[*]${field}}`).join(' ');
        expect(got(`jsonpath=${each}`)).toBe('scratch-v Bound scratch');
        if (containers !== 'off') {
          kubectl(['exec', 'scratch', '--', 'sh', '-c', `echo kept >${root}/index.html`]);
          expect(answer('scratch')).toBe('kept');
        }
        kubectl(['delete', 'pod', 'scratch']);
        await expect.poll(() => got('name'), { timeout: 60_000 }).toBe('');
        // The claim of somebody else is not taken.
        apply(claim('taken-v'), pod('taken', '', { mountPath: root }, { spec: { volumes } }));
        await expect
          .poll(() => kubectl(['get', 'pod', 'taken', '-o', 'jsonpath={.status.conditions[0].message}']))
          .toContain('was not created for pod');
      });

      it('lead to no folder but those of claims', async () => {
        const csi = (volumeHandle: string): object => ({
          csi: { driver: 'folders.servicenet.dev', volumeHandle },
        });
        const handles = ['..', '../..', '../identity', `../../..${outside}`, outside, '.', 'a/../..'];
        for (const [i, handle] of handles.entries()) {
          const name = `handle-${i}`;
          apply(...bound(name, csi(handle)), pod(name, name, { mountPath: root }));
          await expect
            .poll(() => kubectl(['get', 'events', '--field-selector', `involvedObject.name=${name}`]), {
              timeout: 60_000,
            })
            .toMatch(/FailedMount .*volumeHandle/);
        }
        expect(kubectl(['get', 'pod', 'handle-0', '-o', 'jsonpath={.status.phase}'])).toBe('Pending');
      });

      it('hold what Pods write, share it, keep it over restarts, and go with their volume', async () => {
        const site = claim('site');
        apply(site, pod('web', 'site', { mountPath: root }));
        ready('web');
        const folder = join(volumes, volumeOf('site'));
        // As the Pod's programs do; without programs, they are written from here.
        if (containers === 'off') writeFileSync(join(folder, 'index.html'), 'kept\n');
        else kubectl(['exec', 'web', '--', 'sh', '-c', `echo kept >${root}/index.html; chmod 700 ${root}`]);
        apply(
          pod('beside', 'site', { mountPath: root }),
          pod('reader', 'site', { mountPath: root, readOnly: true }),
        );
        for (const name of ['web', 'beside', 'reader']) {
          ready(name);
          await expect.poll(() => answer(name)).toBe('kept');
        }
        if (containers === 'auto') {
          const { stderr } = spawnSync('kubectl', ['exec', 'reader', '--', 'touch', `${root}/more`], {
            ...{ encoding: 'utf8', env: home.environment },
          });
          expect(stderr).toMatch(/Read-only/i);
          expect(statSync(folder).mode & 0o777, 'what a Pod set stays').toBe(0o700);
        }
        expect(statSync(volumes).mode & 0o777, 'no other user of the machine comes in').toBe(0o700);

        kubectl(['delete', 'pod', '--all']);
        await stop();
        await start();
        // Nobody reads the volume of another claim by naming it.
        const thief = claim('thief', { storageClassName: 'standard', volumeName: volumeOf('site') });
        apply(thief, pod('thief', 'thief', { mountPath: root }, { spec: { nodeName: 'node-1' } }));
        apply(pod('web', 'site', { mountPath: root }));
        ready('web');
        expect(answer('web')).toBe('kept');
        await expect
          .poll(() => kubectl(['get', 'events', '--field-selector', 'involvedObject.name=thief']), {
            timeout: 60_000,
          })
          .toMatch(/FailedMount .*not bound/);

        expect(existsSync(folder)).toBe(true);
        kubectl(['delete', 'pod', '--all']);
        kubectl(['delete', 'pvc', 'site']);
        await expect.poll(() => existsSync(folder), { timeout: 60_000 }).toBe(false);
        await expect.poll(() => kubectl(['get', 'pv', '-o', 'name'])).not.toContain('pvc-');
        expect(readdirSync(volumes)).toEqual([]);
      });
    });
  }
}
