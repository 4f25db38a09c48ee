import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

/**
 * Tests of `test/e2e/network/service.go` by their names and steps, with what their Pods send: programs run in a Pod where
 * those exec.
 */
describePods('[sig-network] Services', () => {
  let cluster: PodNetwork;
  /** A namespace for each test. */
  let pods: PodNetwork;
  let namespaces = 0;

  beforeAll(async () => {
    cluster = await PodNetwork.start({ addressPools: ['198.51.100.0/24'] });
  });
  afterAll(() => cluster.server.stop());

  const test = (name: string, steps: () => Promise<void>): void => {
    it(name, async () => {
      pods = await cluster.inNamespace(`services-${++namespaces}`);
      await steps();
      await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
    });
  };
  const http = [{ containerPort: 80 }];
  const inPod = (name: string) => ({ pod: `${pods.namespace}/${name}` });
  const execPod = async (name: string, node = 'node-1') => {
    await pods.pod(name, name, {}, { spec: { nodeName: node } });
    await pods.running(name, 1);
    return inPod(name);
  };
  const answering = (where: Parameters<PodNetwork['namesOf']>[0], url: string, names: readonly string[]) =>
    until(
      () => pods.namesOf(where, url, 10 * names.length),
      (found) => found.join() === names.join(),
    );
  const refused = (where: Parameters<PodNetwork['namesOf']>[0], url: string) =>
    until(
      () => pods.isRefused(where, url),
      (is) => is,
    );
  const change = async (name: string, spec: Partial<ServiceSpec>): Promise<ServiceSpec> => {
    const { status, body } = await pods.call('PATCH', `${pods.path('services')}/${name}`, { spec });
    expect(status, JSON.stringify(body)).toBe(200);
    return body['spec'] as ServiceSpec;
  };
  /** The address of the load balancer of the Service `web`. */
  const balanced = (): Promise<string> =>
    until(
      async () => {
        const { body } = await pods.call('GET', `${pods.path('services')}/web`);
        return textAt(listAt(body, 'status', 'loadBalancer', 'ingress')[0], 'ip');
      },
      (address) => address !== '',
    );
  const nodePortOf = ({ ports = [] }: ServiceSpec): number => ports[0]?.nodePort ?? 0;

  test('should serve a basic endpoint from pods', async () => {
    const from = await execPod('exec');
    await pods.service('web', {}, 80);
    const url = `http://web`;
    await pods.pod('pod1', 'web', { ports: http });
    await answering(from, url, ['pod1']);
    await pods.pod('pod2', 'web', { ports: http });
    await answering(from, url, ['pod1', 'pod2']);
    await pods.delete('pods', 'pod1');
    await answering(from, url, ['pod2']);
    await pods.delete('pods', 'pod2');
    await refused(from, url);
  });

  test('should be updated after adding or deleting ports', async () => {
    const from = await execPod('exec');
    const ports = [
      { name: 'portname1', port: 80, targetPort: 'svc1' },
      { name: 'portname2', port: 81, targetPort: 'svc2' },
    ];
    await pods.service('web', { ports: ports.slice(0, 1) }, 0);
    await pods.pod('pod1', 'web', { ports: [{ name: 'svc1', containerPort: 100 }] });
    await answering(from, 'http://web:80', ['pod1']);
    await pods.pod('pod2', 'web', { ports: [{ name: 'svc2', containerPort: 101 }] });
    await change('web', { ports });
    await answering(from, 'http://web:81', ['pod2']);
    await answering(from, 'http://web:80', ['pod1']);
    await change('web', { ports: ports.slice(0, 1) });
    await until(
      () => pods.curl(from, 'http://web:81/hostname'),
      (answer) => answer === '',
    );
    await answering(from, 'http://web:80', ['pod1']);
  });

  test('should allow pods to hairpin back to themselves through services', async () => {
    await pods.service('web', {}, 80);
    await pods.pod('hairpin', 'web', { ports: http });
    await pods.running('web', 1);
    await answering(inPod('hairpin'), 'http://web', ['hairpin']);
  });

  test('should be able to up and down services', async () => {
    const from = await execPod('exec');
    for (const name of ['up-down-1', 'up-down-2']) {
      await pods.service(name, {}, 80);
      await pods.pod(name, name, { ports: http });
      await answering(from, `http://${name}`, [name]);
    }
    const { body } = await pods.call('GET', `${pods.path('services')}/up-down-1`);
    await pods.delete('services', 'up-down-1');
    const gone = `http://${textAt(body, 'spec', 'clusterIP')}/hostname`;
    await until(
      () => pods.curl(from, gone),
      (answer) => answer === '',
    );
    await answering(from, 'http://up-down-2', ['up-down-2']);
    await pods.service('up-down-3', {}, 80);
    await pods.pod('up-down-3', 'up-down-3', { ports: http });
    await answering(from, 'http://up-down-3', ['up-down-3']);
    await answering(from, 'http://up-down-2', ['up-down-2']);
  });

  test('should work after the service has been recreated', async () => {
    const from = await execPod('exec');
    const { clusterIP = '' } = await pods.service('web', {}, 80);
    await pods.pod('web', 'web', { ports: http });
    await answering(from, 'http://web', ['web']);
    await pods.delete('services', 'web');
    await pods.service('web', { clusterIP }, 80);
    await answering(from, `http://${clusterIP}`, ['web']);
  });

  test('should be able to create a functioning NodePort service', async () => {
    const spec = await pods.service('web', { type: 'NodePort' }, 80);
    for (const name of ['web-1', 'web-2']) await pods.pod(name, 'web', { ports: http });
    const from = await execPod('exec');
    await answering(from, 'http://web', ['web-1', 'web-2']);
    for (const node of ['node-1', 'node-2']) {
      const [address = ''] = await pods.addressesOf(node);
      for (const where of [from, { node: 'node-1' }, { outside: true }] as const) {
        await answering(where, `http://${address}:${nodePortOf(spec)}`, ['web-1', 'web-2']);
      }
    }
  });

  test('should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node', async () => {
    const from = await execPod('exec');
    await pods.service('web', { externalIPs: ['203.0.113.250'] }, 80);
    await pods.pod('web', 'web', { ports: http });
    for (const where of [from, { outside: true }] as const)
      await answering(where, 'http://203.0.113.250', ['web']);
  });

  test('should be able to change the type from ExternalName to ClusterIP, to NodePort and back', async () => {
    const from = await execPod('exec');
    await pods.pod('web', 'web', { ports: http });
    await pods.service('web', { type: 'ExternalName', externalName: 'foo.example.com' }, 80);
    await change('web', { type: 'ClusterIP', externalName: null as never });
    await answering(from, 'http://web', ['web']);
    const spec = await change('web', { type: 'NodePort' });
    const [address = ''] = await pods.addressesOf('node-2');
    await answering({ outside: true }, `http://${address}:${nodePortOf(spec)}`, ['web']);
    const off = { clusterIP: null as never, clusterIPs: null as never };
    await change('web', {
      type: 'ExternalName',
      externalName: `other.${pods.namespace}.svc.cluster.local`,
      ...off,
    });
    await pods.service('other', { selector: { app: 'web' } }, 80);
    await answering(from, 'http://web', ['web']);
    expect(await pods.curl({ outside: true }, `http://${address}:${nodePortOf(spec)}`)).toBe('');
  });

  test('should have session affinity work, and be able to switch it, for cluster IPs and node ports', async () => {
    const from = await execPod('exec');
    const spec = await pods.service('web', { type: 'NodePort' }, 80);
    const all = ['web-1', 'web-2', 'web-3'];
    for (const name of all) await pods.pod(name, 'web', { ports: http });
    const [address = ''] = await pods.addressesOf('node-1');
    for (const url of ['http://web', `http://${address}:${nodePortOf(spec)}`]) {
      await answering(from, url, all);
      await change('web', { sessionAffinity: 'ClientIP' });
      await until(
        () => pods.namesOf(from, url, 20),
        (names) => names.length === 1,
      );
      await change('web', { sessionAffinity: 'None' });
      await answering(from, url, all);
    }
  });

  test('should have session affinity timeout work for service with type clusterIP, and for NodePort service', async () => {
    const from = await execPod('exec');
    const affinity = {
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 } },
    };
    const spec = await pods.service('web', { type: 'NodePort', ...affinity }, 80);
    for (const name of ['web-1', 'web-2', 'web-3']) await pods.pod(name, 'web', { ports: http });
    await pods.running('web', 3);
    const [address = ''] = await pods.addressesOf('node-1');
    const asked = [
      [from, 'http://web'],
      [{ outside: true }, `http://${address}:${nodePortOf(spec)}`],
    ] as const;
    await Promise.all(
      asked.map(async ([where, url]) => {
        // Longer than the timeout between two connections, until another Pod answers.
        const script = `for i in $(seq 40); do name=$(curl -s --max-time 2 ${url}/hostname)
          [ "$name" = "\${first:=$name}" ] || { echo "$name"; break; }; sleep 1.3; done`;
        const { stdout } = await pods.server.run(['sh', '-c', script], where);
        expect(stdout, url).toMatch(/^web-[123]\n$/);
      }),
    );
  });

  test('should implement service.kubernetes.io/service-proxy-name and service.kubernetes.io/headless', async () => {
    const from = await execPod('exec');
    await pods.pod('web', 'web', { ports: http });
    for (const [label, value] of [
      ['service.kubernetes.io/service-proxy-name', 'foo-bar'],
      ['service.kubernetes.io/headless', ''],
    ] as const) {
      const name = value === '' ? 'headless' : 'other';
      const spec = { selector: { app: 'web' } };
      const { clusterIP = '' } = await pods.service(name, spec, 80, { [label]: value });
      const { clusterIP: own = '' } = await pods.service(`${name}-own`, spec, 80);
      await answering(from, `http://${own}`, ['web']);
      expect(await pods.curl(from, `http://${clusterIP}`, '--connect-timeout', '1')).toBe('');
    }
  });

  test('should be rejected when no endpoints exist', async () => {
    const { clusterIP = '', ...spec } = await pods.service('none', { type: 'NodePort' }, 80);
    const [address = ''] = await pods.addressesOf('node-1');
    for (const where of [await execPod('exec'), { node: 'node-1' }] as const)
      await refused(where, `http://${clusterIP}`);
    await refused({ outside: true }, `http://${address}:${nodePortOf(spec)}`);
  });

  test('should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true, and not be able to if it is false', async () => {
    const from = await execPod('exec');
    const annotations = { 'servicenet.dev/readiness': 'false', 'servicenet.dev/stop-after': '60s' };
    const spec = { terminationGracePeriodSeconds: 60 };
    await pods.pod('web', 'web', { ports: http }, { annotations, spec });
    await pods.running('web', 1, { ready: false });
    await pods.service('published', { selector: { app: 'web' }, publishNotReadyAddresses: true }, 80);
    await pods.service('ready', { selector: { app: 'web' } }, 80);
    for (const step of ['unready', 'terminating']) {
      await answering(from, 'http://published', ['web']);
      expect(await pods.isRefused(from, 'http://ready'), step).toBe(true);
      if (step === 'unready') await pods.delete('pods', 'web');
    }
  });

  test('should create endpoints for unready pods', async () => {
    const from = await execPod('exec');
    const annotations = { 'servicenet.dev/readiness': 'false', 'servicenet.dev/stop-after': '60s' };
    await pods.deploy(
      'web',
      1,
      { ports: http },
      { annotations, spec: { terminationGracePeriodSeconds: 60 } },
    );
    await pods.service('web', { publishNotReadyAddresses: true }, 80);
    const [pod] = await pods.running('web', 1, { ready: false });
    const names = [pod?.metadata.name ?? ''];
    await answering(from, 'http://web', names);
    const scaled = await pods.call('PATCH', `${pods.path('deployments', 'apps/v1')}/web`, {
      spec: { replicas: 0 },
    });
    expect(scaled.status).toBe(200);
    await until(
      () => pods.running('web', 0, { ready: false }),
      (running) => running.length === 0,
    );
    await answering(from, 'http://web', names);
    await change('web', { publishNotReadyAddresses: false });
    await refused(from, 'http://web');
    await change('web', { publishNotReadyAddresses: true });
    await answering(from, 'http://web', names);
  });

  test('Service CIDRs should create Services and serve on different Service CIDRs', async () => {
    const from = await execPod('exec');
    await pods.pod('web', 'web', { ports: http });
    const cidrs = '/apis/networking.k8s.io/v1/servicecidrs';
    const made = await pods.call('POST', cidrs, {
      metadata: { name: 'other' },
      spec: { cidrs: ['10.196.196.0/24'] },
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    await until(
      async () => JSON.stringify((await pods.call('GET', `${cidrs}/other`)).body),
      (cidr) => cidr.includes('"type":"Ready"'),
    );
    await pods.service('web', {}, 80);
    const { clusterIP } = await pods.service(
      'other',
      { selector: { app: 'web' }, clusterIP: '10.196.196.10' },
      80,
    );
    expect(clusterIP).toBe('10.196.196.10');
    for (const name of ['web', 'other']) await answering(from, `http://${name}`, ['web']);
    await pods.delete('services', 'other');
    expect((await pods.call('DELETE', `${cidrs}/other`)).status).toBe(200);
  });

  test('should respect internalTrafficPolicy=Local Pod to Pod', async () => {
    await pods.service('web', { internalTrafficPolicy: 'Local' }, 80);
    await pods.pod('web', 'web', { ports: http }, { spec: { nodeName: 'node-1' } });
    await answering(await execPod('near', 'node-1'), 'http://web', ['web']);
    // Silence, not refusal, as kube-proxy does it.
    const far = await execPod('far', 'node-2');
    expect(await pods.curl(far, 'http://web', '--connect-timeout', '1')).toBe('');
  });

  test('should support named targetPorts that resolve to different ports on different endpoints', async () => {
    const from = await execPod('exec');
    await pods.service('web', { ports: [{ port: 80, targetPort: 'web-port' }] }, 0);
    await pods.pod('pod1', 'web', { ports: [{ name: 'web-port', containerPort: 3000 }] });
    await pods.pod('pod2', 'web', { ports: [{ name: 'web-port', containerPort: 3001 }] });
    await answering(from, 'http://web', ['pod1', 'pod2']);
  });

  test('should connect to the ports and the named ports exposed by restartable init containers', async () => {
    const from = await execPod('exec');
    const sidecar = {
      name: 'sidecar',
      image: 'x',
      restartPolicy: 'Always',
      ports: [{ name: 'side', containerPort: 8083 }],
    };
    await pods.service('web', { ports: [{ port: 80, targetPort: 'side' }] }, 0);
    await pods.service('by-number', { selector: { app: 'web' } }, 8083);
    await pods.pod('web', 'web', {}, { spec: { initContainers: [sidecar] } });
    for (const name of ['web', 'by-number']) await answering(from, `http://${name}`, ['web']);
  });

  test('should serve endpoints on same port and different protocols, also for internal traffic on Type LoadBalancer', async () => {
    const from = await execPod('exec');
    const both = ['TCP', 'UDP'].map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      targetPort: 90,
    }));
    const { clusterIP = '' } = await pods.service('web', { ports: both }, 0);
    await pods.pod('web', 'web', { ports: both.map(({ protocol }) => ({ protocol, containerPort: 90 })) });
    await change('web', { type: 'LoadBalancer' });
    for (const address of [clusterIP, await balanced()]) {
      await answering(from, `http://${address}`, ['web']);
      const ask = `exec 3<>/dev/udp/${address}/80; printf hostname >&3; timeout 2 dd bs=512 count=1 status=none <&3`;
      await until(
        async () => (await pods.server.run(['bash', '-c', ask], from)).stdout,
        (answer) => answer === 'web',
      );
    }
  });

  test('should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes', async () => {
    await pods.pod('web', 'web', { ports: http }, { spec: { nodeName: 'node-1' } });
    const spec = await pods.service('web', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }, 80);
    const [[near = ''], [far = '']] = [await pods.addressesOf('node-1'), await pods.addressesOf('node-2')];
    const outside = { outside: true } as const;
    const health = (address: string) =>
      pods.curl(
        outside,
        `http://${address}:${spec.healthCheckNodePort}`,
        '-o',
        '/dev/null',
        '-w',
        '%{http_code}',
      );
    await answering(outside, `http://${near}:${nodePortOf(spec)}`, ['web']);
    expect(await pods.curl(outside, `http://${far}:${nodePortOf(spec)}`, '--connect-timeout', '1')).toBe('');
    expect([await health(near), await health(far)]).toEqual(['200', '503']);
    // The source address is kept.
    expect(await pods.curl(outside, `http://${near}:${nodePortOf(spec)}/clientip`)).toMatch(
      /^172\.19\.255\.2:/,
    );
    await change('web', { externalTrafficPolicy: 'Cluster' });
    await answering(outside, `http://${far}:${nodePortOf(spec)}`, ['web']);
    await until(
      () => health(near),
      (code) => code === '000',
    );
  });

  test('should only allow access from service loadbalancer source ranges, should work from pods', async () => {
    const from = await execPod('exec');
    await pods.pod('web', 'web', { ports: http });
    await pods.service('web', { type: 'LoadBalancer' }, 80);
    const ip = await balanced();
    await answering({ outside: true }, `http://${inUrl(ip)}`, ['web']);
    await answering(from, `http://${ip}`, ['web']);
    await change('web', { loadBalancerSourceRanges: ['10.244.0.0/16'] });
    await until(
      () => pods.curl({ outside: true }, `http://${ip}`, '--connect-timeout', '1'),
      (answer) => answer === '',
    );
    await answering(from, `http://${ip}`, ['web']);
    await change('web', { loadBalancerSourceRanges: ['172.19.255.2/32'] });
    await answering({ outside: true }, `http://${ip}`, ['web']);
  });

  test('should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local', async () => {
    await pods.service('web', { internalTrafficPolicy: 'Local' }, 80);
    const annotations = { 'servicenet.dev/stop-after': '60s' };
    const spec = { nodeName: 'node-1', terminationGracePeriodSeconds: 60 };
    await pods.pod('web', 'web', { ports: http }, { annotations, spec });
    const near = await execPod('near', 'node-1');
    await answering(near, 'http://web', ['web']);
    await pods.delete('pods', 'web');
    await until(
      async () => {
        const query = pods.path('endpointslices', 'discovery.k8s.io/v1');
        const { body } = await pods.call('GET', query);
        return JSON.stringify(body);
      },
      (slices) => slices.includes('"terminating":true'),
    );
    await answering(near, 'http://web', ['web']);
  });
});
