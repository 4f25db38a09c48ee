import { createPublicKey, verify } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const core = '/api/v1/namespaces/default';

describe.skipIf(missing !== '')(
  `containers as processes${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let server: TestServer;

    beforeAll(async () => {
      server = await startApiServer({ network: true, nodes: 1, containers: 'processes' });
    });
    afterAll(() => server.stop());

    it('run one after another with the files, the names and the environment of their Pod', async () => {
      await create('configmaps', { metadata: { name: 'settings' }, data: { color: 'blue' } });
      await create('secrets', { metadata: { name: 'keys' }, stringData: { key: 'hidden' } });
      const mounts = [
        { name: 'shared', mountPath: '/data' },
        { name: 'settings', mountPath: '/etc/settings' },
        { name: 'podinfo', mountPath: '/var/run/podinfo' },
      ];
      const script = `cat /data/first /etc/settings/color /var/run/podinfo/labels; echo
        hostname; grep "$POD_IP" /etc/hosts; grep nameserver /etc/resolv.conf; echo "$KEY $COLOR $KUBERNETES_SERVICE_PORT"
        touch /servicenet-own /etc/servicenet-own && echo layered; touch /tmp/own && ps ax | wc -l; echo why >/dev/termination-log; exit 3`;
      await pod('files', {
        restartPolicy: 'Never',
        volumes: [
          { name: 'shared', emptyDir: {} },
          { name: 'settings', configMap: { name: 'settings' } },
          {
            name: 'podinfo',
            downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
          },
        ],
        initContainers: [
          shell('first', 'echo first >/data/first; touch /servicenet-own || echo read-only', {
            volumeMounts: mounts,
            securityContext: { readOnlyRootFilesystem: true },
          }),
        ],
        containers: [
          shell('main', script, {
            volumeMounts: mounts,
            env: [
              { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              { name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'key' } } },
              { name: 'COLOR', value: 'is $(KEY) $$(KEY)' },
            ],
          }),
        ],
      });
      const ended = await until('files', ({ status }) => status.phase === 'Failed');
      expect(statusOf(ended, 'main')).toMatchObject({
        state: { terminated: { exitCode: 3, reason: 'Error', message: 'why\n' } },
      });
      const said = await logOf(ended, 'main');
      expect(said.slice(0, 3)).toEqual(['first', 'blueapp="files"', expect.stringContaining('zone')]);
      expect(said).toContain('files');
      expect(said).toContain(`${ended.status.podIP ?? ''}\tfiles`);
      expect(said).toContain('nameserver 10.96.0.10');
      expect(said).toContain('hidden is hidden $(KEY) 443');
      expect(said).toContain('layered');
      expect(existsSync('/servicenet-own') || existsSync('/etc/servicenet-own')).toBe(false);
      expect(await logOf(ended, 'first')).toContain('read-only');
    });

    it('cannot leave a volume by a link at a subPath', async () => {
      const outside = await mkdtemp(join('/opt', 'servicenet-outside-'));
      try {
        const volumes = [{ name: 'v', emptyDir: {} }];
        const mount = { name: 'v', mountPath: '/mnt' };
        await pod('leaving', {
          restartPolicy: 'Never',
          volumes,
          initContainers: [shell('link', 'ln -s / /mnt/x', { volumeMounts: [mount] })],
          containers: [
            shell('main', 'echo pwned >/mnt/file', {
              volumeMounts: [{ ...mount, subPath: `x${outside}/made` }],
            }),
          ],
        });
        const stopped = await until(
          'leaving',
          (found) => statusOf(found, 'main')?.state?.waiting?.reason === 'CreateContainerConfigError',
        );
        expect(statusOf(stopped, 'main')?.state?.waiting?.message).toContain('leads out of the volume');
        expect(await readdir(outside)).toEqual([]);
        await pod('staying', {
          restartPolicy: 'Never',
          volumes,
          initContainers: [shell('link', 'mkdir /mnt/real && ln -s real /mnt/x', { volumeMounts: [mount] })],
          containers: [
            shell('main', 'echo kept >/mnt/file && cat /all/real/file', {
              volumeMounts: [
                { ...mount, subPath: 'x' },
                { name: 'v', mountPath: '/all' },
              ],
            }),
          ],
        });
        const ended = await until('staying', ({ status }) => status.phase === 'Succeeded');
        expect(await logOf(ended, 'main')).toEqual(['kept']);
      } finally {
        await rm(outside, { recursive: true });
      }
    });

    it('give clients of the API their account, by the name of the API server', async () => {
      const program = new URL('../support/in-cluster-client.ts', import.meta.url).pathname;
      const candidates = ['candidate-1', 'candidate-2', 'candidate-3'];
      for (const name of candidates) {
        await pod(name, {
          containers: [{ name: 'main', image: 'x', command: [process.execPath, program] }],
        });
      }
      const election = '/apis/coordination.k8s.io/v1/namespaces/default/leases/election';
      const leader = async (transitions: number): Promise<string> => {
        const end = performance.now() + 90_000;
        for (;;) {
          const { body } = await call(server.client, 'GET', election);
          const holder = textAt(body, 'spec', 'holderIdentity');
          const { leaseTransitions } = recordAt(body, 'spec');
          if (candidates.includes(holder) && leaseTransitions === transitions) return holder;
          if (performance.now() > end) throw new Error(JSON.stringify(body));
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      };
      const first = await leader(0);
      await untilLogged(first, `${first} leads in default`);
      await create('configmaps', { metadata: { name: 'news' }, data: {} });
      for (const name of candidates) await untilLogged(name, 'ADDED news');
      const { metadata } = await until(first, ({ status }) => status.phase === 'Running');
      const tls = `curl -s --cacert $A/ca.crt -H "Authorization: Bearer $(cat $A/token)" https://kubernetes.default.svc`;
      await pod('asks', {
        restartPolicy: 'Never',
        containers: [
          shell(
            'main',
            `A=/var/run/secrets/kubernetes.io/serviceaccount; ${tls}/.well-known/openid-configuration; echo; ${tls}/openid/v1/jwks; echo; ${tls}/apis/authentication.k8s.io/v1/selfsubjectreviews -X POST -H 'Content-Type: application/json' -d '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'`,
          ),
        ],
      });
      const asked = await until('asks', ({ status }) => status.phase === 'Succeeded');
      const [discovery = '', keys = '', ...whoAmI] = await logOf(asked, 'main');
      expect(whoAmI.join('')).toContain('system:serviceaccount:default:default');
      // A token ends with its Pod.
      const token = `cat /run/pods/${metadata.uid ?? ''}/volumes/kube-api-access-*/token`;
      const { stdout } = await server.run(['sh', '-c', token], { node: 'node-1' });
      const review = { spec: { token: stdout } };
      // Others verify it by what the issuer publishes.
      const [head = '', claims = '', signature = ''] = stdout.split('.');
      const decoded = (text: string): unknown => JSON.parse(Buffer.from(text, 'base64url').toString());
      const key = listAt(JSON.parse(keys), 'keys').find(
        (each) => textAt(each, 'kid') === textAt(decoded(head), 'kid'),
      );
      const published = createPublicKey({ key: recordAt(key), format: 'jwk' });
      const signed = Buffer.from(`${head}.${claims}`);
      const asKey = { key: published, dsaEncoding: 'ieee-p1363' } as const;
      expect(verify('sha256', signed, asKey, Buffer.from(signature, 'base64url'))).toBe(true);
      expect(decoded(claims)).toMatchObject({ iss: textAt(JSON.parse(discovery), 'issuer') });
      const reviewed = async (): Promise<unknown> =>
        (
          await call(server.client, 'POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
            body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', ...review },
          })
        ).body;
      expect(await reviewed()).toMatchObject({ status: { authenticated: true } });
      await call(server.client, 'DELETE', `${core}/pods/${first}`, { body: { gracePeriodSeconds: 0 } });
      expect(await reviewed()).not.toMatchObject({ status: { authenticated: true } });
      // Another one leads when the lease is over, and one alone.
      const second = await leader(1);
      expect(second).not.toBe(first);
      await untilLogged(second, `${second} leads in default`);
    });

    it.skipIf(process.getuid?.() !== 0)(
      'run as the user and with the groups that they name (skipped: only root can give them)',
      async () => {
        await create('secrets', { metadata: { name: 'readable' }, stringData: { key: 'k' } });
        const volumeMounts = [
          { name: 'data', mountPath: '/data' },
          { name: 'key', mountPath: '/key' },
        ];
        const volumes = [
          { name: 'data', emptyDir: {} },
          { name: 'key', secret: { secretName: 'readable', defaultMode: 0o400 } },
        ];
        const script = `id -u; id -g; id -G; touch /data/f; stat -c '%u %g' /data/f; stat -Lc '%a %g' /key/key; cat /key/key; echo " $HOME"; grep CapEff /proc/self/status; echo -n left >/dev/own-log`;
        const terminationMessagePath = '/dev/own-log';
        await pod('user', {
          restartPolicy: 'Never',
          volumes,
          securityContext: { runAsUser: 1000, fsGroup: 2000, supplementalGroups: [3000] },
          containers: [
            shell('main', script, {
              ...{ volumeMounts, terminationMessagePath, securityContext: { runAsGroup: 1500 } },
            }),
          ],
        });
        await pod('root', {
          securityContext: { runAsNonRoot: true },
          containers: [shell('main', 'id -u', { securityContext: { runAsUser: 0 } })],
        });
        const user = await until('user', ({ status }) => status.phase === 'Succeeded');
        expect(statusOf(user, 'main')?.state?.terminated?.message).toBe('left');
        expect(await logOf(user, 'main')).toEqual([
          ...['1000', '1500', '1500 2000 3000', '1000 2000', '440 2000', 'k /', 'CapEff:\t0000000000000000'],
        ]);
        const refused = await until(
          'root',
          (each) => statusOf(each, 'main')?.state?.waiting?.message !== undefined,
        );
        expect(statusOf(refused, 'main')?.state?.waiting).toEqual({
          reason: 'CreateContainerConfigError',
          message: `container's runAsUser breaks non-root policy (pod: "root_default(${refused.metadata.uid ?? ''})", container: main)`,
        });
      },
    );

    it('wait for what is missing, in the words of a kubelet, and go on when it is there', async () => {
      const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'later', key: 'key' } } }];
      await pod('unset', { containers: [shell('main', 'sleep 100', { env })] });
      const volumes = [{ name: 'v', secret: { secretName: 'later' } }];
      const volumeMounts = [{ name: 'v', mountPath: '/v' }];
      await pod('unmounted', { volumes, containers: [shell('main', 'sleep 100', { volumeMounts })] });
      await pod('unknown', {
        volumes: [{ name: 'v', nfs: { server: 'nfs', path: '/' } }],
        containers: [shell('main', 'sleep 100', { volumeMounts })],
      });
      const unset = await until(
        'unset',
        (each) => statusOf(each, 'main')?.state?.waiting?.message !== undefined,
      );
      expect(statusOf(unset, 'main')?.state?.waiting).toEqual({
        reason: 'CreateContainerConfigError',
        message: 'secret "later" not found',
      });
      const mount = 'MountVolume.SetUp failed for volume "v" : ';
      await untilEvent('unmounted', 'FailedMount', `${mount}secret "later" not found`);
      await untilEvent('unknown', 'FailedMount', `${mount}no volume plugin matched`);
      const waiting = await until('unmounted', (each) => statusOf(each, 'main') !== undefined);
      expect(waiting.status.phase).toBe('Pending');
      expect(statusOf(waiting, 'main')?.state?.waiting?.reason).toBe('ContainerCreating');
      await create('secrets', { metadata: { name: 'later' }, stringData: { key: 'k' } });
      for (const name of ['unset', 'unmounted'])
        await until(name, ({ status }) => status.phase === 'Running');
    });

    it('end as their programs do: missing, killed, without an end of output', async () => {
      const never = { restartPolicy: 'Never' };
      await pod('missing', {
        ...never,
        containers: [{ name: 'main', image: 'busybox', command: ['no-such'] }],
      });
      await pod('killed', { ...never, containers: [shell('main', 'kill -9 $$')] });
      await pod('endless', { ...never, containers: [shell('main', 'yes "$(seq -s, 200)"')] });
      const [missing, killed] = [
        await until('missing', ({ status }) => status.phase === 'Failed'),
        await until('killed', ({ status }) => status.phase === 'Failed'),
      ];
      const { exitCode, reason, message } = statusOf(missing, 'main')?.state?.terminated ?? { exitCode: 0 };
      expect([exitCode, reason]).toEqual([128, 'StartError']);
      expect(message).toContain('exec: "no-such": executable file not found in $PATH');
      // Process 1 does not hear a signal of its own.
      expect(statusOf(killed, 'main')?.state?.terminated?.exitCode).not.toBe(0);
      const endless = await until('endless', ({ status }) => status.phase === 'Running');
      const folder = `/run/pods/${endless.metadata.uid ?? ''}/logs`;
      const size = await server.run(['sh', '-c', `sleep 3; du -sm ${folder} | cut -f1`], { node: 'node-1' });
      expect(Number(size.stdout)).toBeLessThan(16);
    });

    it('are restarted by their probes, and asked to end before they are killed', async () => {
      const livenessProbe = {
        exec: { command: ['test', '-e', '/tmp/alive'] },
        periodSeconds: 1,
        failureThreshold: 1,
      };
      await pod('probed', {
        terminationGracePeriodSeconds: 1,
        containers: [
          shell('main', 'touch /tmp/alive; sleep 2; rm /tmp/alive; sleep 100', {
            livenessProbe: { ...livenessProbe, initialDelaySeconds: 1 },
            readinessProbe: livenessProbe,
          }),
        ],
      });
      await until('probed', (each) => statusOf(each, 'main')?.ready === true);
      const again = await until('probed', (each) => (statusOf(each, 'main')?.restartCount ?? 0) > 0);
      expect(statusOf(again, 'main')?.lastState?.terminated?.exitCode).toBe(137);
      await untilEvent('probed', 'Unhealthy', 'Liveness probe failed: ');
      const trap = `trap 'cat /tmp/hook; echo bye; exit 4' TERM; while :; do sleep 0.1; done`;
      const preStop = { exec: { command: ['sh', '-c', 'echo hooked >/tmp/hook'] } };
      await pod('asked', { containers: [shell('main', trap, { lifecycle: { preStop } })] });
      const asked = await until('asked', ({ status }) => status.phase === 'Running');
      await call(server.client, 'PATCH', `${core}/pods/asked`, {
        body: { metadata: { finalizers: ['example.com/keep'] } },
        contentType: 'application/merge-patch+json',
      });
      await call(server.client, 'DELETE', `${core}/pods/asked`);
      const ended = await until('asked', ({ status }) => status.phase === 'Failed');
      expect(statusOf(ended, 'main')?.state?.terminated?.exitCode).toBe(4);
      expect(await logOf(asked, 'main')).toEqual(['hooked', 'bye']);
    });

    async function untilEvent(name: string, reason: string, start: string): Promise<void> {
      const end = performance.now() + 60_000;
      for (;;) {
        const { body } = await call(server.client, 'GET', `${core}/events`);
        const messages = listAt(body, 'items')
          .filter(
            (event) => textAt(event, 'involvedObject', 'name') === name && textAt(event, 'reason') === reason,
          )
          .map((event) => textAt(event, 'message'));
        if (messages.some((message) => message.startsWith(start))) return;
        if (performance.now() > end) throw new Error(`${name}: ${messages.join('; ')}`);
      }
    }

    async function untilLogged(name: string, text: string): Promise<void> {
      const end = performance.now() + 60_000;
      for (;;) {
        const lines = await logOf(await until(name, () => true), 'main');
        if (lines.includes(text)) return;
        if (performance.now() > end) throw new Error(`${name} said ${lines.join('; ')}`);
      }
    }

    async function create(plural: string, body: unknown): Promise<void> {
      const { status, body: answer } = await call(server.client, 'POST', `${core}/${plural}`, { body });
      expect(status, JSON.stringify(answer)).toBe(201);
    }

    async function pod(name: string, spec: PodSpec): Promise<void> {
      await create('pods', { metadata: { name, labels: { app: name } }, spec });
    }

    async function until(name: string, holds: (pod: Pod) => boolean): Promise<Pod> {
      const end = performance.now() + 60_000;
      for (;;) {
        const { body } = await call(server.client, 'GET', `${core}/pods/${name}`);
        if (isPod(body) && holds(body)) return body;
        if (performance.now() > end) throw new Error(`Pod ${name}: ${JSON.stringify(body)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }

    /** The lines of a container's log, as its file on the node has them. */
    async function logOf({ metadata: { uid = '' } }: Pod, container: string, attempt = 0): Promise<string[]> {
      const files = `/run/pods/${uid}/logs/${container}/${attempt}/*`;
      const { stdout } = await server.run(['sh', '-c', `cat ${files}`], { node: 'node-1' });
      return stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' ').slice(3).join(' '));
    }
  },
);

function shell(name: string, script: string, more: Partial<Container> = {}): Container {
  return { name, image: 'busybox', command: ['sh', '-c', script], ...more };
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses].find((each) => each.name === name);
}

function isPod(value: unknown): value is Pod {
  return isRecord(value) && value['kind'] === 'Pod';
}
