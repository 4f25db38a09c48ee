import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Container, PodSpec, ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { textAt } from '../../../src/objects/json.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

const agnhost = 'registry.k8s.io/e2e-test-images/agnhost:2.56';

/** Tests of sig-network by their names and steps, with the programs that their containers run. */
describePods('[sig-network] with programs', () => {
  let cluster: PodNetwork;
  let pods: PodNetwork;
  let kubectl: Kubectl;
  let namespaces = 0;

  beforeAll(async () => {
    cluster = await PodNetwork.start({ containers: 'processes' });
    kubectl = new Kubectl(cluster.server.kubeconfig);
  });
  afterAll(async () => {
    kubectl.dispose();
    await cluster.server.stop();
  });

  const test = (name: string, steps: () => Promise<void>): void => {
    it(name, async () => {
      pods = await cluster.inNamespace(`programs-${++namespaces}`);
      await steps();
      await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
    });
  };
  const raw = async (path: string): Promise<string> => {
    const { code, stdout } = await kubectl.run(['get', '--raw', path]);
    return code === 0 ? stdout : '';
  };
  const exec = (pod: string, script: string) =>
    kubectl.run(['-n', pods.namespace, 'exec', pod, '--', '/bin/sh', '-c', script]);
  const launch = async (
    name: string,
    app: string,
    container: Partial<Container>,
    spec: Partial<PodSpec> = {},
  ): Promise<string> => {
    await pods.pod(name, app, { image: agnhost, ...container }, { spec });
    const found = await until(
      async () => (await pods.running(app, 1)).find(({ metadata }) => metadata.name === name),
      (pod) => pod !== undefined,
    );
    return found?.status.podIP ?? '';
  };
  const netexec = (name: string, app: string, spec: Partial<PodSpec> = {}, args: readonly string[] = []) =>
    launch(name, app, { args: ['netexec', ...args] }, spec);
  /** By a merge patch, in which null takes a member away. */
  const change = async (name: string, spec: object): Promise<ServiceSpec> => {
    const { status, body } = await pods.call('PATCH', `${pods.path('services')}/${name}`, { spec });
    expect(status, JSON.stringify(body)).toBe(200);
    return body['spec'] as ServiceSpec;
  };

  test('DNS should provide /etc/hosts entries for the cluster', async () => {
    const fqdn = `dns-querier-1.dns-test-service.${pods.namespace}.svc.cluster.local`;
    const look = (image: string): string =>
      [fqdn, 'dns-querier-1']
        .map((name) => `test -n "$$(getent hosts ${name})" && echo OK > /results/${image}_hosts@${name};`)
        .join('');
    const volumeMounts = [{ name: 'results', mountPath: '/results' }];
    const querier = (name: string, image: string): Container => ({
      ...{ name, image: `registry.k8s.io/e2e-test-images/${image}`, volumeMounts },
      command: ['sh', '-c', `for i in \`seq 1 600\`; do ${look(name)} sleep 1; done`],
    });
    const served = [{ name: 'results', mountPath: '/usr/share/nginx/html' }];
    const containers = [
      { name: 'webserver', image: 'nginx', volumeMounts: served },
      querier('wheezy', 'agnhost:2.56'),
      querier('jessie', 'jessie-dnsutils:1.7'),
    ];
    const spec = { containers, hostname: 'dns-querier-1', subdomain: 'dns-test-service' };
    await pods.call('POST', pods.path('pods'), {
      metadata: { name: 'dns-test', labels: { app: 'dns-test' } },
      spec: { ...spec, terminationGracePeriodSeconds: 0, volumes: [{ name: 'results', emptyDir: {} }] },
    });
    await pods.running('dns-test', 1);
    const results = `${pods.path('pods')}/dns-test/proxy`;
    for (const image of ['wheezy', 'jessie']) {
      for (const name of [fqdn, 'dns-querier-1']) {
        await until(
          () => raw(`${results}/${image}_hosts@${name}`),
          (said) => said === 'OK\n',
        );
      }
    }
    expect(await raw(`${results}/wheezy_hosts@nothing`)).toBe('');
  });

  test('Proxy version v1 should proxy through a service and a pod, and logs of nodes', async () => {
    // What porter does upstream in one container: a port each with a text.
    const texts: Readonly<Record<number, string>> = {
      ...{ 80: '<a href="/rewriteme">test</a>', 160: 'foo', 162: 'bar' },
      ...{ 443: '<a href="/tlsrewriteme">test</a>', 460: 'tls baz' },
    };
    const keyPair = ['--tls-cert-file=/localhost.crt', '--tls-private-key-file=/localhost.key'];
    const containers = Object.entries(texts).map(([port, text]) => ({
      ...{ name: `port-${port}`, image: agnhost },
      args: [
        ...['netexec', `--http-port=${port}`, '--udp-port=-1'],
        `--http-override=/echo?msg=${encodeURIComponent(text)}`,
        ...(port === '443' || port === '460' ? keyPair : []),
      ],
      ports: [{ name: { 160: 'dest1', 460: 'tlsdest1' }[port] ?? `p${port}`, containerPort: Number(port) }],
    }));
    await pods.call('POST', pods.path('pods'), {
      metadata: { name: 'porter', labels: { app: 'porter' } },
      spec: { containers, terminationGracePeriodSeconds: 0 },
    });
    await pods.running('porter', 1);
    await pods.service(
      'porter',
      {
        ports: [
          { name: 'portname1', port: 80, targetPort: 'dest1' },
          { name: 'portname2', port: 81, targetPort: 162 },
          { name: 'tlsportname1', port: 443, targetPort: 'tlsdest1' },
        ],
      },
      0,
    );
    const wanted: Readonly<Record<string, string>> = {
      'services/porter:portname1': 'foo',
      'services/http:porter:portname2': 'bar',
      'services/https:porter:tlsportname1': 'tls baz',
      'pods/porter': `<a href="${pods.path('pods')}/porter/proxy/rewriteme">test</a>`,
      'pods/http:porter:160': 'foo',
      'pods/https:porter:443': `<a href="${pods.path('pods')}/https:porter:443/proxy/tlsrewriteme">test</a>`,
      'pods/https:porter:460': 'tls baz',
    };
    for (const [target, text] of Object.entries(wanted)) {
      await until(
        () => raw(`${pods.path(target)}/proxy/`),
        (said) => said === text,
      );
    }
    for (const node of ['node-1:10250', 'node-1']) {
      expect(await raw(`/api/v1/nodes/${node}/proxy/logs/`)).toContain('<pre>');
    }
  });

  test('Proxy version v1 A set of valid responses are returned for both pod and service Proxy', async () => {
    // The built-in server tells the method, as porter does upstream.
    await launch('agnhost', 'agnhost', { image: 'x', ports: [{ containerPort: 80 }] });
    await pods.service('e2e-proxy-test-service', { selector: { app: 'agnhost' } }, 80);
    for (const target of ['pods/agnhost', 'services/e2e-proxy-test-service']) {
      for (const method of ['DELETE', 'OPTIONS', 'PATCH', 'POST', 'PUT']) {
        const { body } = await until(
          () => pods.call(method, `${pods.path(target)}/proxy`),
          ({ status }) => status === 200,
        );
        expect(body).toMatchObject({ method, pod: 'agnhost' });
      }
      const { status, headers } = await pods.server.client.request('GET', `${pods.path(target)}/proxy`, {
        query: { method: 'GET' },
      });
      expect([status, headers['location']]).toEqual([301, `${pods.path(target)}/proxy/?method=GET`]);
    }
  });

  test('EndpointSlice should support a Service with multiple endpoint IPs and ports specified in multiple EndpointSlices', async () => {
    const first = await netexec('pod1', 'pod1', {}, ['--http-port=8090', '--udp-port=8091']);
    const second = await netexec('pod2', 'pod2', {}, ['--http-port=8092', '--udp-port=8093']);
    await launch('pause-pod-0', 'pause', {});
    const { clusterIP = '' } = await pods.service(
      'example-custom-endpoints',
      {
        selector: {},
        ports: [80, 81].map((port) => ({ name: `port${port}`, port, protocol: 'TCP' as const })),
      },
      0,
    );
    const slice = (name: string, address: string, port: number) =>
      pods.call('POST', pods.path('endpointslices', 'discovery.k8s.io/v1'), {
        metadata: {
          name,
          labels: {
            'kubernetes.io/service-name': 'example-custom-endpoints',
            'endpointslice.kubernetes.io/managed-by': 'e2e-test-k8s.io',
          },
        },
        ...{ addressType: 'IPv4', endpoints: [{ addresses: [address] }] },
        ports: [80, 81].map((number) => ({ name: `port${number}`, port, protocol: 'TCP' })),
      });
    expect((await slice('custom-1', first, 8090)).status).toBe(201);
    expect((await slice('custom-2', second, 8092)).status).toBe(201);
    for (const port of [80, 81]) {
      const ask = `for i in $(seq 20); do curl -q -s --connect-timeout 2 ${clusterIP}:${port}/hostname; echo; done | sort -u`;
      await until(
        () => exec('pause-pod-0', ask),
        ({ stdout }) => stdout === 'pod1\npod2\n',
      );
    }
  });

  test('Networking should check kube-proxy urls', async () => {
    await launch(
      'host',
      'host',
      { args: ['netexec', '--http-port=9081', '--udp-port=9082'] },
      { hostNetwork: true },
    );
    const { stdout } = await exec('host', 'curl -i -q -s --connect-timeout 1 http://localhost:10256/healthz');
    expect(stdout).toMatch(/200 OK[^]*lastUpdated/);
    const mode = `curl -o /dev/null -i -q -s -w '%{http_code}' --connect-timeout 1 http://localhost:10249/proxyMode`;
    expect((await exec('host', mode)).stdout).toBe('200');
  });

  test('Networking Granular Checks: Services should update endpoints and node ports, and function for client IP based session affinity and endpoints using hostNetwork: http and udp', async () => {
    const server = ['--http-port=8083', '--udp-port=8081'];
    for (const node of ['node-1', 'node-2']) {
      await netexec(`netserver-${node}`, 'netserver', { nodeName: node }, server);
      await netexec(`host-${node}`, 'host-server', { nodeName: node, hostNetwork: true }, [
        ...['--http-port=9083', '--udp-port=9084'],
      ]);
    }
    const ip = await netexec('test-container-pod', 'test-container-pod', {}, [
      '--http-port=9080',
      '--udp-port=9079',
    ]);
    const ports = (http: number, udp: number) => [
      { name: 'http', port: 80, targetPort: http },
      { name: 'udp', port: 90, protocol: 'UDP' as const, targetPort: udp },
    ];
    const nodePort = await pods.service(
      'node-port-service',
      { type: 'NodePort', selector: { app: 'netserver' }, ports: ports(8083, 8081) },
      0,
    );
    const sticky = await pods.service(
      'session-affinity-service',
      { selector: { app: 'netserver' }, sessionAffinity: 'ClientIP', ports: ports(8083, 8081) },
      0,
    );
    const second = await pods.service(
      'second',
      { selector: { app: 'netserver' }, ports: ports(8083, 8081) },
      0,
    );
    const onHosts = await pods.service(
      'on-hosts',
      { selector: { app: 'host-server' }, ports: ports(9083, 9084) },
      0,
    );
    const dial = async (protocol: 'http' | 'udp', host: string, port: number): Promise<string[]> => {
      const url = `http://${inUrl(ip)}:9080/dial?request=hostname&protocol=${protocol}&host=${host}&port=${port}&tries=10`;
      const { stdout } = await exec('test-container-pod', `curl -g -q -s '${url}'`);
      const { responses = [] } = JSON.parse(stdout || '{}') as { responses?: string[] };
      return [...new Set(responses)].sort();
    };
    const both = ['netserver-node-1', 'netserver-node-2'];
    const reaching = (protocol: 'http' | 'udp', host: string, port: number, names: readonly string[]) =>
      until(
        () => dial(protocol, host, port),
        (found) => found.join() === names.join(),
      );
    const [nodeIP = ''] = await pods.addressesOf('node-1');
    const [httpPort, udpPort] = (nodePort.ports ?? []).map(({ nodePort: port }) => port ?? 0);
    for (const [protocol, port, onNode] of [
      ['http', 80, httpPort],
      ['udp', 90, udpPort],
    ] as const) {
      await reaching(protocol, nodePort.clusterIP ?? '', port, both);
      await reaching(protocol, second.clusterIP ?? '', port, both);
      await reaching(protocol, nodeIP, onNode ?? 0, both);
      await reaching(protocol, onHosts.clusterIP ?? '', port, ['node-1', 'node-2']);
      await until(
        () => dial(protocol, sticky.clusterIP ?? '', port),
        (found) => found.length === 1,
      );
    }
    await pods.delete('services', 'second');
    await pods.delete('pods', 'netserver-node-1');
    for (const [protocol, port] of [
      ['http', 80],
      ['udp', 90],
    ] as const) {
      await reaching(protocol, nodePort.clusterIP ?? '', port, ['netserver-node-2']);
    }
    await pods.delete('services', 'node-port-service');
    await reaching('http', nodeIP, httpPort ?? 0, []);
    await reaching('udp', nodeIP, udpPort ?? 0, []);
  });

  test('Conntrack should drop INVALID conntrack entries', async () => {
    await launch('boom-server', 'boom-server', { command: ['sleep', '1000'] }, { nodeName: 'node-2' });
    await launch('startup-script', 'startup-script', {}, { nodeName: 'node-1' });
    const { clusterIP = '' } = await pods.service('boom-server', { ports: [{ port: 9000 }] }, 9000);
    const [server] = await pods.running('boom-server', 1);
    const script = fileURLToPath(new URL('../support/boom-server.ts', import.meta.url));
    const words = [process.execPath, script, server?.status.podIP ?? '', '9000', '5'];
    const serving = cluster.server.run(words, { pod: `${pods.namespace}/boom-server` });
    // Connections through the Service, until the server has had enough.
    const connect = `while true; do nc -d -w 1 ${clusterIP} 9000 & sleep 0.2; done`;
    const client = kubectl.start([
      ...['-n', pods.namespace, 'exec', 'startup-script', '--'],
      ...['timeout', '100', '/bin/sh', '-c', connect],
    ]);
    const { stdout, stderr } = await serving;
    client.kill();
    const said = stdout.split('\n');
    const count = (text: string): number => said.filter((line) => line === text).length;
    expect(count('connection established'), stderr).toBeGreaterThanOrEqual(5);
    expect(count('boom packet injected')).toBeGreaterThanOrEqual(5);
    // The client would end a connection of which it hears by another address than that of the Service.
    expect(count('ERROR: RST received')).toBe(0);
  });

  test('KubeProxy should set TCP CLOSE_WAIT timeout', async () => {
    const [address = ''] = await pods.addressesOf('node-2');
    // The server ends its half at once, and the client leaves its own open.
    const serving = [{ containerPort: 11_302, hostPort: 11_302 }];
    const listening = ['bash', '-c', 'nc -N -l 11302 </dev/null'];
    await launch('server', 'server', { command: listening, ports: serving }, { nodeName: 'node-2' });
    const open = `until exec 3<>/dev/tcp/${address}/11302; do sleep 0.2; done; sleep 3600`;
    await launch('client', 'client', { command: ['bash', '-c', open] }, { nodeName: 'node-1' });
    const entry = await until(
      async () => {
        const list = ['conntrack', '-L', '-p', 'tcp', '-d', address];
        const { stdout } = await cluster.server.run(list, { node: 'node-1' });
        return stdout.split('\n').find((line) => /CLOSE_WAIT.*dport=11302/.test(line)) ?? '';
      },
      (line) => line !== '',
    );
    const [, , seconds] = entry.split(/\s+/);
    expect(Math.abs(Number(seconds) - 3600), entry).toBeLessThanOrEqual(60);
  });

  test('DNS should support configurable pod resolv.conf', async () => {
    // Upstream runs a CoreDNS that knows one name; here the cluster's knows the name of a Service.
    const [name, search] = ['notexistname', `${pods.namespace}.svc.cluster.local`];
    const { clusterIP: address = '' } = await pods.service(name, {}, 80);
    const { body } = await pods.call('GET', '/api/v1/namespaces/kube-system/services/kube-dns');
    const server = textAt(body, 'spec', 'clusterIP');
    const dnsConfig = {
      ...{ nameservers: [server], searches: [search] },
      options: [{ name: 'ndots', value: '2' }],
    };
    const image = 'registry.k8s.io/e2e-test-images/jessie-dnsutils:1.7';
    const command = ['sleep', '1000'];
    await launch('e2e-dns-utils', 'dns-utils', { image, command }, { dnsPolicy: 'None', dnsConfig });
    const { stdout } = await exec('e2e-dns-utils', 'cat /etc/resolv.conf');
    expect(stdout).toBe(`search ${search}\nnameserver ${server}\noptions ndots:2\n`);
    expect((await exec('e2e-dns-utils', `dig +short +search ${name}`)).stdout.trim()).toBe(address);
    expect((await exec('e2e-dns-utils', 'dig +short +search other')).stdout.trim()).toBe('');
  });

  test('Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service, with InternalTrafficPolicy set to Local and for a client with hostNetwork', async () => {
    const ports = [{ port: 80, protocol: 'UDP' as const, targetPort: 80 }];
    const local = await pods.service('local', { internalTrafficPolicy: 'Local', ports }, 0);
    const whole = await pods.service('whole', { ports }, 0);
    const client = async (
      name: string,
      { clusterIP = '' }: ServiceSpec,
      spec: Partial<PodSpec>,
    ): Promise<void> => {
      const script = `for i in $(seq 1 3000); do echo hostname | nc -u -w 1 -p 12345 ${clusterIP} 80; echo; done`;
      await launch(name, name, { command: ['/bin/sh', '-c', script] }, { nodeName: 'node-1', ...spec });
    };
    await client('client', local, {});
    await client('host-client', whole, { hostNetwork: true });
    const last = (name: string, server: string) =>
      until(
        async () => (await kubectl.run(['-n', pods.namespace, 'logs', name, '--since=3s'])).stdout,
        (text) => text.includes(server),
      );
    const server = (name: string, app: string, node: string) =>
      netexec(name, app, { nodeName: node }, ['--udp-port=80']);
    await server('pod-server-1', 'local', 'node-1');
    await server('whole-1', 'whole', 'node-2');
    await last('client', 'pod-server-1');
    await last('host-client', 'whole-1');
    await server('pod-server-2', 'local', 'node-2');
    await server('whole-2', 'whole', 'node-2');
    for (const name of ['pod-server-1', 'whole-1']) await pods.delete('pods', name);
    await last('host-client', 'whole-2');
    await server('pod-server-3', 'local', 'node-1');
    await last('client', 'pod-server-3');
  });

  test('should respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod, and Pod and Node to Pod (hostNetwork: true)', async () => {
    const [podServer, hostServer] = ['8000', '10180'];
    await netexec('echo-hostname-0', 'svc-itp', { nodeName: 'node-1' }, ['--http-port', podServer]);
    await netexec('echo-host-0', 'svc-itp-host', { nodeName: 'node-1', hostNetwork: true }, [
      ...['--http-port', hostServer, '--udp-port', hostServer],
    ]);
    const policy = { internalTrafficPolicy: 'Local' as const };
    const toPod = await pods.service('svc-itp', policy, Number(podServer));
    const toHost = await pods.service('svc-itp-host', policy, Number(hostServer));
    for (const node of ['node-1', 'node-2']) {
      await launch(`pause-${node}`, `pause-${node}`, {}, { nodeName: node });
      await launch(`pause-host-${node}`, `pause-host-${node}`, {}, { nodeName: node, hostNetwork: true });
    }
    const ask = async (pod: string, { clusterIP = '' }: ServiceSpec): Promise<string> => {
      const { code, stdout } = await exec(pod, `curl -q -s --connect-timeout 2 ${inUrl(clusterIP)}/hostname`);
      return code === 0 ? stdout : 'no answer';
    };
    for (const [pod, service, answer] of [
      ['pause-host-node-1', toPod, 'echo-hostname-0'],
      ['pause-host-node-2', toPod, 'no answer'],
      ['pause-node-1', toHost, 'node-1'],
      ['pause-node-2', toHost, 'no answer'],
      ['pause-host-node-1', toHost, 'node-1'],
      ['pause-host-node-2', toHost, 'no answer'],
    ] as const) {
      await until(
        () => ask(pod, service),
        (said) => said === answer,
      );
    }
  });

  test('should be able to change the type between ClusterIP, ExternalName and NodePort, over TCP and UDP', async () => {
    // The built-in server tells its name by TCP and UDP, as serve-hostname does upstream.
    const served = (['TCP', 'UDP'] as const).map((protocol) => ({ containerPort: 9376, protocol }));
    for (const name of ['server-1', 'server-2']) {
      await launch(name, 'changing', { image: 'x', ports: served });
    }
    await launch('execpod', 'execpod', {});
    const answering = (host: string, port: number, flag: '-t' | '-u') =>
      until(
        () => exec('execpod', `echo hostname | nc -v ${flag} -w 2 ${host} ${port}`),
        // By UDP, nc looks with some bytes of its own before.
        ({ code, stdout }) => code === 0 && /(?:^|\n)server-\d\n?$/.test(stdout),
      );
    const ports = (['TCP', 'UDP'] as const).map((protocol) => ({
      ...{ name: protocol.toLowerCase(), protocol, port: 80, targetPort: 9376 },
    }));
    const external = {
      type: 'ExternalName',
      externalName: 'execpod',
      clusterIP: null,
      clusterIPs: null,
    } as const;
    await pods.service(
      'changing',
      { type: 'ExternalName', externalName: 'example.com', selector: { app: 'changing' } },
      80,
    );
    const clusterIP = { type: 'ClusterIP' as const, externalName: '', ports };
    expect((await change('changing', clusterIP)).clusterIP).toMatch(/\d/);
    for (const flag of ['-t', '-u'] as const) await answering('changing', 80, flag);
    await change('changing', { ...external, ports: null });
    const nodePort = await change('changing', { ...clusterIP, type: 'NodePort' });
    const [address = ''] = await pods.addressesOf('node-2');
    for (const [i, flag] of (['-t', '-u'] as const).entries()) {
      await answering('changing', 80, flag);
      await answering(nodePort.clusterIP ?? '', 80, flag);
      await answering(address, nodePort.ports?.[i]?.nodePort ?? 0, flag);
    }
    // Back: the name leads elsewhere now.
    await pods.call('PATCH', `${pods.path('services')}/changing`, {
      spec: {
        ...{ type: 'ExternalName', externalName: `elsewhere.${pods.namespace}.svc.cluster.local` },
        ...{ ports: null, clusterIP: null, clusterIPs: null },
      },
    });
    await pods.service('elsewhere', { clusterIP: 'None', selector: { app: 'execpod' } }, 80);
    const own = (await pods.running('execpod', 1))[0]?.status.podIP ?? '';
    await until(
      () => exec('execpod', 'getent ahostsv4 changing'),
      ({ stdout }) => stdout.includes(own),
    );
  });

  test('Connectivity Pod Lifecycle should be able to connect to and from a terminating Pod', async () => {
    const serving = ['--http-port=80', '--delay-shutdown=100'];
    const spec = { terminationGracePeriodSeconds: 100 };
    const address = await netexec('webserver-pod', 'webserver', spec, serving);
    const other = await netexec('other-pod', 'other', {}, ['--http-port=80']);
    await launch('pause-pod-1', 'pause', {});
    const hostname = (from: string, ip: string) =>
      exec(from, `curl -q -s --connect-timeout 5 ${inUrl(ip)}/hostname`);
    expect((await hostname('pause-pod-1', address)).stdout).toBe('webserver-pod');
    await pods.delete('pods', 'webserver-pod');
    // It has heard SIGTERM.
    await until(
      () => kubectl.run(['-n', pods.namespace, 'logs', 'webserver-pod']),
      ({ stdout }) => stdout.includes('Sleeping'),
    );
    expect((await hostname('pause-pod-1', address)).stdout).toBe('webserver-pod');
    expect((await hostname('webserver-pod', other)).stdout).toBe('other-pod');
    await kubectl.ok(['-n', pods.namespace, 'delete', 'pod', 'webserver-pod', '--grace-period=0', '--force']);
  });

  test('Connectivity Pod Lifecycle should be able to have zero downtime on a Blue Green deployment using Services and Readiness Gates', async () => {
    const gate = 'k8s.io/blue-green';
    const { clusterIP = '' } = await pods.service('blue-green-svc', {}, 80);
    const spec = { terminationGracePeriodSeconds: 30, readinessGates: [{ conditionType: gate }] };
    for (const name of ['blue-pod', 'green-pod']) {
      const args = ['netexec', '--http-port=80', '--delay-shutdown=30'];
      await pods.pod(name, 'blue-green-svc', { image: agnhost, args }, { spec });
    }
    const created = await pods.running('blue-green-svc', 2, { ready: false });
    const readiness = created.map(
      ({ status }) => status.conditions?.find(({ type }) => type === 'Ready')?.status,
    );
    expect(readiness).toEqual(['False', 'False']);
    await launch('client-pod-1', 'client', {});
    const patch = (name: string, status: string): Promise<string> =>
      kubectl.ok([
        ...['-n', pods.namespace, 'patch', 'pod', name, '--subresource=status', '--type=strategic', '-p'],
        JSON.stringify({ status: { conditions: [{ type: gate, status }] } }),
      ]);
    const answering = (name: string) =>
      until(
        async () =>
          (
            await exec(
              'client-pod-1',
              `for i in $(seq 8); do curl -q -s --connect-timeout 5 ${inUrl(clusterIP)}/hostname; echo; done`,
            )
          ).stdout,
        (said) => said === `${name}\n`.repeat(8),
      );
    await patch('blue-pod', 'True');
    await answering('blue-pod');
    await patch('green-pod', 'True');
    await patch('blue-pod', 'False');
    await answering('green-pod');
  });
});
