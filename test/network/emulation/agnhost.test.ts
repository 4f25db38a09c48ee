import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Container, Pod, PodSpec } from '../../../src/objects/types/core.generated.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { createCertificateAuthority, issueServerCertificate } from '../../../src/tls/certificates.ts';
import { realAgnhost } from '../support/agnhost.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

const image = 'registry.k8s.io/e2e-test-images/agnhost:2.56';

describePods('agnhost', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({ containers: 'processes', images: realAgnhost.images });
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

  it('NoSNAT: netexec sees a Pod of another node by its own address', async () => {
    const addressOf = async (name: string): Promise<string> =>
      inUrl((await pods.running(name, 1))[0]?.status.podIP ?? '');
    for (const node of ['node-1', 'node-2']) await agnhost(`on-${node}`, ['netexec'], {}, { nodeName: node });
    const [one, other] = [await addressOf('on-node-1'), await addressOf('on-node-2')];
    const said = await pods.curl(
      { pod: 'default/server' },
      `http://${one}:8080/dial?request=clientip&host=${other}&port=8080`,
    );
    const { responses } = JSON.parse(said) as { responses: readonly string[] };
    expect(responses[0]?.replace(/:\d+$/, '')).toBe(one);
  });

  it('netexec: its paths, its words by UDP, and its end', async () => {
    await agnhost(
      'netexec',
      [
        ...['netexec', '--http-port', '80', '--udp-port', '81'],
        '--udp-listen-addresses=127.0.0.1,127.0.0.1',
        ...['--delay-shutdown=100', '-v=4'],
      ],
      { env: [{ name: 'SHOP', value: 'open' }] },
      { terminationGracePeriodSeconds: 100 },
    );
    await agnhost('no-udp', ['netexec', '--udp-port', '-1', '--http-override', '/echo?msg=<b>&code=202']);
    const [address, silent] = [await pods.running('netexec', 1), await pods.running('no-udp', 1)].map(
      ([pod]) => `http://${inUrl(pod?.status.podIP ?? '')}`,
    );
    const from = { pod: 'default/server' } as const;
    const ask = (path: string): Promise<string> =>
      pods.curl(from, `${address}${path}`, '-w', ' %{http_code}');
    for (const [path, answer] of [
      ['/serverport', '80 200'],
      ['/readyz', 'ok 200'],
      ['/envvar?var=SHOP', 'open 200'],
      ['/envvar?var=NONE', 'env var "NONE" is not set\n 500'],
      ['/header?key=Accept', '*/* 200'],
      ['/echo?msg=a&code=418', 'a 418'],
      ['/shell?cmd=echo%20$SHOP;exit%207', '{"output":"open\\n","error":"exit status 7"} 200'],
    ] as const) {
      expect(await ask(path)).toBe(answer);
    }
    for (const [word, answer] of [
      ['serverport', '81'],
      ['envvar SHOP', 'open'],
      ['echo A b', 'a b'],
    ] as const) {
      const asked = `/dial?protocol=udp&host=127.0.0.1&port=81&request=${encodeURIComponent(word)}`;
      expect(await ask(asked)).toBe(`{"responses":["${answer}"]} 200`);
    }
    const whole = await pods.curl(from, `${silent}:8080/hostname`, '-w', ' %{http_code} %{content_type}');
    expect(whole).toBe('<b> 202 text/html; charset=utf-8');
    await pods.delete('pods', 'netexec');
    await until(
      () => ask('/readyz'),
      (answer) => answer === 'shutting down 503',
    );
    expect(await ask('/shutdown')).toContain('000');
  });

  it('is asked by the API server by TLS, as the extension API server and the webhook of a Service', async () => {
    const now = new Date();
    const authority = createCertificateAuthority('shop-ca', { now });
    const { certificate, key } = issueServerCertificate(authority, 'tls', ['tls.default.svc'], { now });
    const create = async (path: string, body: object): Promise<void> =>
      expect((await pods.call('POST', path, body)).status).toBe(201);
    await create(pods.path('secrets'), {
      metadata: { name: 'tls' },
      stringData: { 'tls.crt': certificate, 'tls.key': key },
    });
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: 'shop' } };
    await agnhost(
      'tls',
      [
        ...['netexec', '--http-port=8443', '--udp-port=-1'],
        ...['--tls-cert-file=/tls/tls.crt', '--tls-private-key-file=/tls/tls.key'],
        `--http-override=/echo?msg=${encodeURIComponent(JSON.stringify(review))}`,
      ],
      { volumeMounts: [{ name: 'tls', mountPath: '/tls' }] },
      { volumes: [{ name: 'tls', secret: { secretName: 'tls' } }] },
    );
    await pods.service('tls', { ports: [{ port: 443, targetPort: 8443 }] }, 0);
    const service = { namespace: 'default', name: 'tls' };
    const caBundle = Buffer.from(authority.certificate).toString('base64');
    await create('/apis/apiregistration.k8s.io/v1/apiservices', {
      metadata: { name: 'v1.shop.example.com' },
      spec: {
        ...{ service: { ...service, port: 443 }, caBundle, group: 'shop.example.com', version: 'v1' },
        ...{ groupPriorityMinimum: 1000, versionPriority: 10 },
      },
    });
    await until(
      () =>
        pods.server.client.request('GET', '/apis/shop.example.com/v1/things').then(
          ({ bytes }) => bytes.toString(),
          (error: unknown) => String(error),
        ),
      (said) => said === JSON.stringify(review),
    );
    await create('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
      metadata: { name: 'shop' },
      webhooks: [
        {
          ...{ name: 'shop.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'] },
          clientConfig: { service: { ...service, path: '/' }, caBundle },
          rules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] },
          ],
          objectSelector: { matchLabels: { shop: 'yes' } },
        },
      ],
    });
    // Its answer is none to the question: that it came shows the way.
    await until(
      async () =>
        textAt(
          (
            await pods.call('POST', pods.path('configmaps'), {
              metadata: { generateName: 'shop-', labels: { shop: 'yes' } },
            })
          ).body,
          'message',
        ),
      (said) => /expected response.uid=.*got "shop"/.test(said),
    );
  });

  it('other commands fail, and say which there are and how to run the real one', async () => {
    const never: Partial<PodSpec> = { restartPolicy: 'Never' };
    await agnhost('unknown', ['porter', '--json-response'], {}, never);
    await agnhost('by-shell', [], { command: ['/bin/sh', '-c', '/agnhost connect x:80'] }, never);
    for (const name of ['unknown', 'by-shell']) {
      const { status } = await ended(name);
      expect(status.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(1);
      expect(await logged(name, '\n')).toMatch(
        /^(?:Error: unknown command "porter": )?the built-in agnhost has netexec, guestbook and pause, .*: servicenet up --image registry.k8s.io\/e2e-test-images\/agnhost=\/path\/to\/agnhost\n$/,
      );
    }
  });

  const { missing, image: real } = realAgnhost;
  const toReal = missing === '' ? '' : ` (missing: ${missing})`;

  it.skipIf(missing !== '')(`grpc-health-checking of the real one is what probes ask${toReal}`, async () => {
    const grpc = { port: 5000, service: 'shop' };
    const probe = { grpc, periodSeconds: 1, failureThreshold: 1 };
    await agnhost('health', ['grpc-health-checking', '--service=shop'], {
      image: real,
      readinessProbe: probe,
    });
    await agnhost('other', ['grpc-health-checking'], { image: real, readinessProbe: probe });
    const [{ status } = expect.fail('no Pod')] = await pods.running('health', 1);
    await pods.curl({ pod: 'default/server' }, `http://${inUrl(status.podIP ?? '')}:8080/make-not-serving`);
    await until(
      () => read('health'),
      (pod) => pod.status.containerStatuses?.[0]?.ready === false,
    );
    const unhealthy = (name: string, text: string): Promise<unknown> =>
      until(
        async () =>
          listAt((await pods.call('GET', pods.path('events'))).body, 'items')
            .filter(
              (event) =>
                textAt(event, 'involvedObject', 'name') === name && textAt(event, 'reason') === 'Unhealthy',
            )
            .map((event) => textAt(event, 'message')),
        (messages) => messages.some((message) => message.includes(text)),
      );
    await unhealthy('health', 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")');
    await unhealthy('other', 'unknown service');
  });
});
