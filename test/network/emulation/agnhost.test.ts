import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Container, Pod, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

const image = 'registry.k8s.io/e2e-test-images/agnhost:2.56';

describePods('agnhost', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({ containers: 'processes' });
    await agnhost('server', ['netexec', '--http-port=80', '--udp-port=81'], {}, { hostname: 'server' });
    await pods.service('shop', { selector: { app: 'server' }, ports: [{ port: 8080, targetPort: 80 }] }, 80);
    await pods.running('server', 1);
  });
  afterAll(() => pods.server.stop());

  const agnhost = (
    name: string,
    args: readonly string[],
    container: Partial<Container> = {},
    spec: Partial<PodSpec> = {},
  ): Promise<void> => pods.pod(name, name, { image, args: [...args], ...container }, { spec });
  const read = (name: string): Promise<Pod> =>
    pods.call('GET', `${pods.path('pods')}/${name}`).then(({ body }) => body as unknown as Pod);
  const logged = (name: string, text: string): Promise<string> =>
    until(
      async () => {
        const { metadata } = await read(name);
        const files = `sed -E 's/^[^ ]+ [^ ]+ [^ ]+ //' /run/pods/${metadata.uid ?? ''}/logs/main/0/*`;
        return (await pods.server.run(['sh', '-c', files], { node: 'node-1' })).stdout;
      },
      (log) => log.includes(text),
    );
  const ended = (name: string): Promise<Pod> =>
    until(
      () => read(name),
      ({ status }) => ['Succeeded', 'Failed'].includes(status.phase ?? ''),
    );

  it('netexec dials by address and by name, http and udp, and refuses in the words of the original', async () => {
    const [{ status } = expect.fail('no Pod')] = await pods.running('server', 1);
    const ip = status.podIP ?? '';
    const dial = async (query: string): Promise<[string, string]> => {
      const { stdout } = await pods.server.run(
        ['curl', '-sS', '-w', '\n%{http_code}', `http://${inUrl(ip)}/dial?${query}`],
        { pod: 'default/server' },
      );
      const lines = stdout.split('\n');
      return [lines.pop() ?? '', lines.join('\n').trim()];
    };
    const named = '{"responses":["server"]}';
    expect(await dial(`request=hostname&protocol=http&host=${ip}&port=80&tries=2`)).toEqual([
      '200',
      '{"responses":["server","server"]}',
    ]);
    // The first one comes from /etc/hosts, the others from the DNS of the cluster.
    for (const [host, port] of [
      ['server', 80],
      ['shop', 8080],
      ['shop.default.svc.cluster.local.', 8080],
    ]) {
      await until(
        () => dial(`request=hostname&host=${host}&port=${port}`),
        ([, said]) => said === named,
      );
    }
    expect(await dial(`request=hostName&protocol=udp&host=${ip}&port=81`)).toEqual(['200', named]);
    expect(await dial(`request=echo%20Hello&protocol=udp&host=localhost&port=81`)).toEqual([
      '200',
      '{"responses":["hello"]}',
    ]);
    expect(await dial(`request=hostname&protocol=sctp&host=${ip}&port=80`)).toEqual([
      '200',
      '{"errors":["sctp dial failed. err:protocol not supported"]}',
    ]);
    const [, closed] = await dial(`request=hostname&protocol=udp&host=${ip}&port=82`);
    expect(closed).toContain('reading from udp connection failed');
    expect(await dial(`request=hostname&host=nowhere.test&port=80`)).toEqual([
      '400',
      'host and/or port param are invalid. lookup nowhere.test: no such host',
    ]);
    expect(await dial(`host=${ip}&port=80`)).toEqual(['400', 'request parameter not specified. <nil>']);
    expect(await dial(`request=x&host=${ip}&port=80&protocol=icmp`)).toEqual([
      '400',
      'unsupported protocol. icmp',
    ]);
  });

  it('tcp-reset, no-snat-test and net do to connections what their tests look for', async () => {
    const [{ status } = expect.fail('no Pod')] = await pods.running('server', 1);
    const env = [
      { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
      { name: 'NODE_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
    ];
    await agnhost('reset', ['tcp-reset', '--port', '8080']);
    for (const name of ['snat-1', 'snat-2']) await agnhost(name, ['no-snat-test', '--port=8080'], { env });
    const seconds = { PostFinTimeoutSeconds: 1 };
    const server = { LocalAddr: '0.0.0.0:9999', ...seconds };
    await agnhost(
      'half-server',
      ['net', '--runner', 'nat-closewait-server', '--options', JSON.stringify(server)],
      {},
      {
        restartPolicy: 'Never',
      },
    );
    const address = async (name: string): Promise<string> =>
      (await pods.running(name, 1))[0]?.status.podIP ?? '';
    const from = { pod: 'default/server' } as const;
    const reset = await pods.server.run(
      ['curl', '-sS', `http://${inUrl(await address('reset'))}:8080`],
      from,
    );
    expect(reset.exitCode).toBe(56);
    const targets = [`${inUrl(await address('snat-2'))}:8080`, `${inUrl(status.podIP ?? '')}:80`];
    const check = async (target: string): Promise<string> =>
      await pods.curl(
        from,
        `http://${inUrl(await address('snat-1'))}:8080/checknosnat?ips=${target}`,
        '-w',
        '%{http_code}',
      );
    expect(await check(targets[0] ?? '')).toBe('200');
    expect(await check(targets[1] ?? '')).toMatch(/^Returned ip "" != my Pod ip .*500$/);
    const client = {
      RemoteAddr: `${inUrl(await address('half-server'))}:9999`,
      TimeoutSeconds: 20,
      ...seconds,
    };
    await agnhost(
      'half-client',
      ['net', '--runner=nat-closewait-client', `--options=${JSON.stringify(client)}`],
      {},
      {
        restartPolicy: 'Never',
      },
    );
    for (const name of ['half-client', 'half-server']) {
      expect((await ended(name)).status.phase).toBe('Succeeded');
      expect(await logged(name, 'Done')).toMatch(/^output:\n\n# .*waiting 1 seconds\n# Done\n$/s);
    }
  });

  it('grpc-health-checking is what probes of gRPC ask', async () => {
    const grpc = { port: 5000, service: 'shop' };
    const probe = { grpc, periodSeconds: 1, failureThreshold: 1 };
    await agnhost('health', ['grpc-health-checking', '--service=shop'], { readinessProbe: probe });
    await agnhost('unknown', ['grpc-health-checking'], { readinessProbe: probe });
    const [{ status } = expect.fail('no Pod')] = await pods.running('health', 1);
    await pods.curl({ pod: 'default/server' }, `http://${inUrl(status.podIP ?? '')}:8080/make-not-serving`);
    await until(
      () => read('health'),
      (pod) => pod.status.containerStatuses?.[0]?.ready === false,
    );
    const unhealthy = (name: string): Promise<readonly string[]> =>
      until(
        async () =>
          listAt((await pods.call('GET', pods.path('events'))).body, 'items')
            .filter(
              (event) =>
                textAt(event, 'involvedObject', 'name') === name && textAt(event, 'reason') === 'Unhealthy',
            )
            .map((event) => textAt(event, 'message')),
        (messages) => messages.length > 0,
      );
    expect(await unhealthy('health')).toContain(
      'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")',
    );
    expect((await unhealthy('unknown'))[0]).toMatch(/^Readiness probe failed: .*unknown service/);
  });

  it('entrypoint-tester and mounttest show words and files', async () => {
    const never: Partial<PodSpec> = { restartPolicy: 'Never' };
    await agnhost('words', ['entrypoint-tester', 'a', 'b'], {}, never);
    await agnhost('entry', [], { command: ['/agnhost-2', 'entrypoint-tester'] }, never);
    const volumeMounts = [{ name: 'v', mountPath: '/test-volume' }];
    const file = '/test-volume/test-file';
    await agnhost(
      'mounted',
      [
        'mounttest',
        '--fs_type=/test-volume',
        `--new_file_0644=${file}`,
        `--file_perm=${file}`,
        `--file_mode=${file}`,
      ],
      { volumeMounts },
      { ...never, volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] },
    );
    await agnhost('unmounted', ['mounttest', '--file_content=/no/such'], {}, never);
    for (const name of ['words', 'entry', 'mounted'])
      expect((await ended(name)).status.phase).toBe('Succeeded');
    expect(await logged('words', '\n')).toBe('[/agnhost entrypoint-tester a b]\n');
    expect(await logged('entry', '\n')).toBe('[/agnhost-2 entrypoint-tester]\n');
    expect((await logged('mounted', 'perms')).split('\n')).toEqual([
      'mount type of "/test-volume": tmpfs',
      `content of file "${file}": mount-tester new file`,
      '',
      `mode of file "${file}": -rw-r--r--`,
      `perms of file "${file}": -rw-r--r--`,
      '',
    ]);
    expect((await ended('unmounted')).status.phase).toBe('Failed');
    expect(await logged('unmounted', 'error')).toBe(
      'error reading file content for "/no/such": open /no/such: no such file or directory\n',
    );
  });
});
