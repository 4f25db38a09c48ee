import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest';
import { listAt, recordAt } from '../../../src/objects/json.ts';
import type { Container } from '../../../src/objects/types/core.generated.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { realAgnhost } from '../support/agnhost.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

const testImage = (name: string): string => `registry.k8s.io/e2e-test-images/${name}`;
const agnhost = testImage('agnhost:2.56');

/**
 * Tests of `kubectl/kubectl.go`, `kubectl/portforward.go`, `apps/statefulset.go` and
 * `network/service.go` of `test/e2e` whose programs run in containers, by their names and steps.
 */
describePods('[sig-cli] [sig-apps] with programs', () => {
  let cluster: PodNetwork;
  let pods: PodNetwork;
  let kubectl: Kubectl;
  const running: ChildProcess[] = [];
  let namespaces = 0;

  beforeAll(async () => {
    cluster = await PodNetwork.start({ containers: 'processes', images: realAgnhost.images });
    kubectl = new Kubectl(cluster.server.kubeconfig);
  });
  afterAll(async () => {
    for (const child of running) child.kill();
    kubectl.dispose();
    await cluster.server.stop();
  });

  const test = (name: string, steps: (skip: TestContext['skip']) => Promise<void>): void => {
    it(name, async ({ skip }) => {
      pods = await cluster.inNamespace(`workloads-${++namespaces}`);
      await steps(skip);
      await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
    });
  };
  const run = (...words: string[]): Promise<string> => kubectl.ok(['-n', pods.namespace, ...words]);
  const create = async (path: string, body: object): Promise<void> => {
    const { status, body: said } = await pods.call('POST', path, body);
    expect(status, JSON.stringify(said)).toBe(201);
  };
  const raw = async (path: string): Promise<string> => {
    const { code, stdout } = await kubectl.run(['get', '--raw', path]);
    return code === 0 ? stdout : '';
  };

  test('Guestbook application should create and stop a working application', async () => {
    const parts: readonly (readonly [string, number, string[]])[] = [
      ['agnhost-primary', 1, ['guestbook', '--http-port', '6379']],
      ['agnhost-replica', 2, ['guestbook', '--replicaof', 'agnhost-primary', '--http-port', '6379']],
      ['frontend', 3, ['guestbook', '--backend-port', '6379']],
    ];
    for (const [name, replicas, args] of parts) {
      const port = name === 'frontend' ? 80 : 6379;
      await pods.service(name, { ports: [{ port, targetPort: port }] }, port);
      await pods.deploy(name, replicas, { image: agnhost, args });
    }
    await pods.running('frontend', 3);
    const ask = (command: string, value: string): Promise<string> =>
      raw(
        `/api/v1/namespaces/${pods.namespace}/services/frontend/proxy/guestbook?cmd=${command}&key=messages&value=${value}`,
      );
    await until(
      () => ask('get', ''),
      (said) => said === '{"data":""}',
    );
    expect(await ask('set', 'TestEntry')).toBe('{"message":"Updated"}');
    // Each replica has it, as soon as it has registered with the primary.
    await until(
      () => Promise.all(Array.from({ length: 6 }, () => ask('get', ''))),
      (said) => said.every((each) => each === '{"data":"TestEntry"}'),
    );
  });

  test('Update Demo should create and stop, and scale a replication controller', async () => {
    const labels = { name: 'update-demo', version: 'nautilus' };
    const container = {
      name: 'update-demo',
      image: agnhost,
      args: ['netexec', '--http-port=80', '--http-override=/echo?msg={"image":"nautilus.jpg"}'],
      ports: [{ containerPort: 80 }],
    };
    await create(pods.path('replicationcontrollers'), {
      metadata: { name: 'update-demo-nautilus' },
      spec: {
        replicas: 2,
        selector: labels,
        template: { metadata: { labels }, spec: { containers: [container] } },
      },
    });
    const shown = (count: number): Promise<readonly string[]> =>
      until(
        async () => {
          const names = (await run('get', 'pods', '-l', 'name=update-demo', '-o', 'name')).split('\n');
          return await Promise.all(
            names
              .filter((name) => name !== '')
              .map((name) =>
                raw(`/api/v1/namespaces/${pods.namespace}/${name.replace('pod', 'pods')}/proxy/data.json`),
              ),
          );
        },
        (said) => said.length === count && said.every((text) => text.trim() === '{"image":"nautilus.jpg"}'),
      );
    await shown(2);
    for (const count of [1, 2]) {
      await run('scale', 'rc', 'update-demo-nautilus', `--replicas=${count}`, '--timeout=5m');
      await shown(count);
    }
    await run('delete', 'rc', 'update-demo-nautilus', '--grace-period=0', '--force');
    await until(
      () => run('get', 'pods', '-l', 'name=update-demo', '-o', 'name'),
      (names) => names === '',
    );
  });

  test('Simple pod should support exec, and through kubectl proxy, and return command exit codes', async () => {
    const probe = { httpGet: { path: '/', port: 80 }, initialDelaySeconds: 1, timeoutSeconds: 5 };
    await pods.pod('httpd', 'httpd', {
      image: 'httpd',
      ports: [{ containerPort: 80 }],
      readinessProbe: probe,
    });
    await pods.running('httpd', 1);
    expect(await run('exec', 'httpd', '--', 'echo', 'running', 'in', 'container')).toBe(
      'running in container\n',
    );
    const input = ['-n', pods.namespace, 'exec', '-i', 'httpd', '--', 'cat'];
    expect(await kubectl.ok(input, 'abcd1234')).toBe('abcd1234');
    const ended = async (...command: string[]): Promise<number | null> =>
      (await kubectl.run(['-n', pods.namespace, 'exec', 'httpd', '--', '/bin/sh', '-c', ...command])).code;
    expect([await ended('exit 0'), await ended('exit 42')]).toEqual([0, 42]);
    const proxy = kubectl.start(['proxy', '--port=0', '--disable-filter=true']);
    running.push(proxy);
    const line = proxy.stdout === null ? '' : String((await once(proxy.stdout, 'data'))[0]);
    const [, port] = /127\.0\.0\.1:(\d+)/.exec(line) ?? [];
    const through = [`--server=http://127.0.0.1:${port}`, '-n', pods.namespace, 'exec', 'httpd', '--'];
    expect(await kubectl.ok([...through, 'echo', 'running', 'in', 'container'])).toBe(
      'running in container\n',
    );
    expect(await raw(`/api/v1/namespaces/${pods.namespace}/pods/httpd/proxy/`)).toContain('"pod":"httpd"');
  });

  test('Kubectl Port forwarding should support a client that connects, sends DATA, and disconnects', async (skip) => {
    skip(realAgnhost.missing !== '', `missing: ${realAgnhost.missing}`);
    const env = Object.entries({
      ...{
        BIND_PORT: '80',
        EXPECTED_CLIENT_DATA: 'abc',
        CHUNKS: '10',
        CHUNK_SIZE: '10',
        CHUNK_INTERVAL: '100',
      },
    }).map(([name, value]) => ({ name, value }));
    const served = async (
      name: string,
      address: string,
      send: (socket: ReturnType<typeof connect>) => void,
    ) => {
      const bind = [...env, { name: 'BIND_ADDRESS', value: address }];
      await pods.pod(
        name,
        name,
        { image: realAgnhost.image, args: ['port-forward-tester'], env: bind },
        {
          spec: { restartPolicy: 'Never' },
        },
      );
      await pods.running(name, 1);
      const child = kubectl.start(['-n', pods.namespace, 'port-forward', name, ':80']);
      running.push(child);
      const line = child.stdout === null ? '' : String((await once(child.stdout, 'data'))[0]);
      const [, port] = /Forwarding from 127\.0\.0\.1:(\d+) -> 80/.exec(line) ?? [];
      const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
      let received = '';
      socket.on('data', (chunk) => (received += String(chunk)));
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      send(socket);
      const logs = await until(
        () => run('logs', name),
        (text) => text.includes('Done') || text.includes('instead'),
      );
      child.kill('SIGINT');
      return { received, logs };
    };
    for (const address of ['0.0.0.0', 'localhost']) {
      const whole = await served(`sends-${address.replaceAll('.', '-')}`, address, (socket) =>
        socket.end('abc'),
      );
      expect(whole.received).toBe('x'.repeat(100));
      expect(whole.logs).toContain('Received expected client data');
    }
    const nothing = await served('nothing', '0.0.0.0', (socket) => socket.end());
    expect(nothing.logs).toContain('Expected to read 3 bytes from client, but got 0 instead');
  });

  test('StatefulSet Scaling should happen in predictable order and halt if any stateful pod is unhealthy', async () => {
    const labels = { app: 'ss', baz: 'blah' };
    const probe = { httpGet: { path: '/index.html', port: 80 }, periodSeconds: 1, failureThreshold: 1 };
    const container: Container = {
      name: 'webserver',
      image: 'httpd',
      ports: [{ containerPort: 80 }],
      readinessProbe: probe,
      volumeMounts: [{ name: 'pages', mountPath: '/usr/local/apache2/htdocs' }],
    };
    const writePage: Container = {
      ...{ name: 'page', image: 'busybox', command: ['sh', '-c', 'echo hello >/pages/index.html'] },
      volumeMounts: [{ name: 'pages', mountPath: '/pages' }],
    };
    await pods.service('test', { clusterIP: 'None', selector: labels }, 80);
    await create(pods.path('statefulsets', 'apps/v1'), {
      metadata: { name: 'ss' },
      spec: {
        ...{ replicas: 1, serviceName: 'test', selector: { matchLabels: labels } },
        template: {
          metadata: { labels },
          spec: {
            ...{ terminationGracePeriodSeconds: 0, volumes: [{ name: 'pages', emptyDir: {} }] },
            ...{ initContainers: [writePage], containers: [container] },
          },
        },
      },
    });
    const ready = async (): Promise<string> =>
      await run(
        ...['get', 'pods', '-l', 'app=ss', '--sort-by=.metadata.name', '-o'],
        'jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}',
      );
    const readyAre = (wanted: string): Promise<string> => until(ready, (said) => said.trim() === wanted);
    const move = (pod: string, from: string, to: string): Promise<string> =>
      run('exec', pod, '--', '/bin/sh', '-x', '-c', `mv -v ${from} ${to} || true`);
    const page = '/usr/local/apache2/htdocs/';
    await readyAre('ss-0=True');
    // Unhealthy: it stays alone.
    await move('ss-0', `${page}index.html`, '/tmp/');
    await readyAre('ss-0=False');
    await run('scale', 'statefulset', 'ss', '--replicas=3');
    await until(
      async () =>
        recordAt((await pods.call('GET', `${pods.path('statefulsets', 'apps/v1')}/ss`)).body, 'status'),
      ({ observedGeneration }) => observedGeneration === 2,
    );
    expect((await ready()).trim()).toBe('ss-0=False');
    await move('ss-0', '/tmp/index.html', page);
    await readyAre('ss-0=True ss-1=True ss-2=True');
    // Unhealthy Pods halt the way down, too: only the first of them may go.
    const all = ['ss-0', 'ss-1', 'ss-2'];
    for (const name of all) await move(name, `${page}index.html`, '/tmp/');
    await readyAre('ss-0=False ss-1=False ss-2=False');
    await run('scale', 'statefulset', 'ss', '--replicas=0');
    await until(
      async () =>
        recordAt((await pods.call('GET', `${pods.path('statefulsets', 'apps/v1')}/ss`)).body, 'status'),
      ({ observedGeneration }) => observedGeneration === 3,
    );
    expect((await ready()).trim()).toBe('ss-0=False ss-1=False ss-2=False');
    for (const name of all.toReversed()) await move(name, '/tmp/index.html', page).catch(() => '');
    await readyAre('');
  });

  test('Job should run a job to completion when tasks sometimes fail and are locally restarted', async () => {
    const script = 'if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi';
    const container = {
      ...{ name: 'c', image: testImage('busybox:1.36.1-1'), command: ['/bin/sh', '-c', script] },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    };
    const volumes = [{ name: 'data', emptyDir: {} }];
    await create(pods.path('jobs', 'batch/v1'), {
      metadata: { name: 'fail-once-local' },
      spec: {
        ...{ parallelism: 2, completions: 2 },
        template: { spec: { restartPolicy: 'OnFailure', volumes, containers: [container] } },
      },
    });
    const job = await until(
      async () =>
        recordAt((await pods.call('GET', `${pods.path('jobs', 'batch/v1')}/fail-once-local`)).body, 'status'),
      ({ succeeded }) => succeeded === 2,
    );
    expect(job['failed']).toBeUndefined();
    expect(
      (
        await run('get', 'pods', '-o', 'jsonpath={.items[*].status.containerStatuses[0].restartCount}')
      ).trim(),
    ).toBe('1 1');
  });

  test('should be rejected for evicted pods (no endpoints exist)', async () => {
    await pods.service('evicted-pods', { publishNotReadyAddresses: true }, 80);
    const script = 'dd if=/dev/zero of=file bs=1M count=10; sleep 10000';
    await pods.pod('evicted-pod', 'evicted-pods', {
      ...{ image: agnhost, command: ['/bin/sh', '-c', script] },
      resources: { limits: { 'ephemeral-storage': '5Mi' } },
    });
    await until(
      () => run('get', 'pod', 'evicted-pod', '-o', 'jsonpath={.status.phase} {.status.reason}'),
      (said) => said === 'Failed Evicted',
    );
    await pods.pod('execpod', 'execpod', { image: agnhost });
    await pods.running('execpod', 1);
    await until(
      async () =>
        listAt((await pods.call('GET', pods.path('endpointslices', 'discovery.k8s.io/v1'))).body, 'items'),
      (slices) => slices.length === 1 && listAt(slices[0], 'endpoints').length === 0,
    );
    const connecting = ['exec', 'execpod', '--', 'nc', '-vz', '-w', '3', 'evicted-pods', '80'];
    await until(
      () => kubectl.run(['-n', pods.namespace, ...connecting]),
      ({ code, stderr }) => code === 1 && stderr.includes('refused'),
    );
  });
});
