import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunPlace } from '../../../src/testing/index.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

/**
 * Tests of `networking.go`, `dns.go`, `proxy.go`, `hostport.go`, `dual_stack.go`, `conntrack.go` and `traffic_distribution.go` of
 * `test/e2e/network`, by their names and steps; programs run in a Pod where those exec.
 */
describePods('[sig-network]', () => {
  let cluster: PodNetwork;
  let pods: PodNetwork;
  let namespaces = 0;

  beforeAll(async () => {
    cluster = await PodNetwork.start({ serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112' });
  });
  afterAll(() => cluster.server.stop());

  const inNamespace = async (steps: () => Promise<void>): Promise<void> => {
    pods = await cluster.inNamespace(`networking-${++namespaces}`);
    await steps();
    await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
  };
  const test = (name: string, steps: () => Promise<void>): void => it(name, () => inNamespace(steps));
  const ports = [
    { containerPort: 8083, name: 'http' },
    { containerPort: 8081, name: 'udp', protocol: 'UDP' },
  ];
  const inPod = (name: string): RunPlace => ({ pod: `${pods.namespace}/${name}` });
  const execPod = async (name = 'exec', spec = {}): Promise<RunPlace> => {
    await pods.pod(name, name, {}, { spec });
    await pods.running(name, 1);
    return inPod(name);
  };
  const output = async (where: RunPlace, script: string): Promise<string> =>
    (await pods.server.run(['bash', '-c', script], where)).stdout.trim();
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const says = (where: RunPlace, script: string, expected: string) =>
    until(
      () => output(where, script),
      (said) => said === expected,
    );
  const askUdp = (address: string, port: number): string =>
    `exec 3<>/dev/udp/${address}/${port}; printf hostname >&3; timeout 2 dd bs=512 count=1 status=none <&3`;
  const answering = (where: RunPlace, url: string, names: readonly string[]) =>
    until(
      () => pods.namesOf(where, url, 6 * names.length),
      (found) => found.join() === names.join(),
    );
  const udpNamesOf = async (where: RunPlace, address: string, port: number, times: number) => {
    const asked = `for i in $(seq ${times}); do ( name=$(${askUdp(address, port)}); echo "$name" ) & done | sort -u; wait`;
    return (await output(where, asked)).split('\n').filter((name) => name !== '');
  };
  const answeringUdp = (where: RunPlace, address: string, port: number, names: readonly string[]) =>
    until(
      () => udpNamesOf(where, address, port, 6 * names.length),
      (found) => found.join() === names.join(),
    );

  test('Networking Granular Checks: Pods should function for intra-pod and node-pod communication: http and udp', async () => {
    for (const node of ['node-1', 'node-2'])
      await pods.pod(`netserver-${node}`, 'netserver', { ports }, { spec: { nodeName: node } });
    const servers = await pods.running('netserver', 2);
    const from = await execPod();
    for (const { metadata, status } of servers) {
      for (const { ip } of status.podIPs ?? []) {
        for (const where of [from, { node: 'node-1' }] as const) {
          await answering(where, `http://${inUrl(ip)}:8083`, [metadata.name ?? '']);
          await answeringUdp(where, ip, 8081, [metadata.name ?? '']);
        }
      }
    }
  });

  test('Networking Granular Checks: Services should function for pod, node and endpoint Services, by both IP families: http and udp', async () => {
    const names = ['netserver-0', 'netserver-1'];
    for (const name of names) await pods.pod(name, 'netserver', { ports });
    const servicePorts = [
      { name: 'http', port: 80, targetPort: 8083 },
      { name: 'udp', port: 90, protocol: 'UDP', targetPort: 8081 },
    ];
    const spec = await pods.service(
      'netserver',
      { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack', ports: servicePorts },
      0,
    );
    const [web = 0, udp = 0] = (spec.ports ?? []).map(({ nodePort = 0 }) => nodePort);
    await pods.running('netserver', 2);
    const from = await execPod();
    for (const where of [from, { node: 'node-1' }, inPod('netserver-0')] as const) {
      for (const address of spec.clusterIPs ?? []) {
        await answering(where, `http://${inUrl(address)}`, names);
        await answeringUdp(where, address, 90, names);
      }
    }
    for (const where of [from, { outside: true }] as const) {
      for (const address of await pods.addressesOf('node-2')) {
        await answering(where, `http://${inUrl(address)}:${web}`, names);
        await answeringUdp(where, address, udp, names);
      }
    }
    const sticky = await pods.service(
      'sticky',
      {
        ...{ selector: { app: 'netserver' }, ipFamilyPolicy: 'RequireDualStack' },
        ...{ sessionAffinity: 'ClientIP', ports: servicePorts },
      },
      0,
    );
    for (const address of sticky.clusterIPs ?? []) {
      for (const asked of [
        () => pods.namesOf(from, `http://${inUrl(address)}`, 20),
        () => udpNamesOf(from, address, 90, 20),
      ]) {
        await until(asked, (found) => found.length === 1);
      }
    }
    // "should update endpoints: http", "should update nodePort: http"
    await pods.delete('pods', 'netserver-0');
    for (const address of spec.clusterIPs ?? []) {
      await answering(from, `http://${inUrl(address)}`, ['netserver-1']);
      await answeringUdp(from, address, 90, ['netserver-1']);
    }
    const { status } = await pods.call('PATCH', `${pods.path('services')}/netserver`, {
      spec: { type: 'ClusterIP', ports: servicePorts.map((port) => ({ ...port, nodePort: null })) },
    });
    expect(status).toBe(200);
    const [address = ''] = await pods.addressesOf('node-1');
    await until(
      () => pods.isRefused({ outside: true }, `http://${address}:${web}`),
      (is) => is,
    );
  });

  test('Networking Granular Checks: Services should be able to handle large requests, by both IP families: http and udp', async () => {
    await pods.pod('netserver', 'netserver', { ports });
    const { clusterIPs = [] } = await pods.service(
      'netserver',
      {
        ipFamilyPolicy: 'RequireDualStack',
        ports: [
          { name: 'udp', protocol: 'UDP', port: 90, targetPort: 8081 },
          { name: 'http', port: 80, targetPort: 8083 },
        ],
      },
      0,
    );
    await pods.running('netserver', 1);
    const from = await execPod();
    const query = 'x'.repeat(10_000);
    expect(clusterIPs).toHaveLength(2);
    for (const address of clusterIPs) {
      await until(
        async () => (await pods.get(from, `http://${inUrl(address)}/echo?msg=${query}`))?.['path'],
        (path) => path === `/echo?msg=${query}`,
      );
      const large = `exec 3<>/dev/udp/${address}/90; head -c 2000 /dev/zero | tr '\\0' y | dd bs=4000 status=none >&3; timeout 2 dd bs=4000 count=1 status=none <&3 | wc -c`;
      await says(from, large, '2000');
    }
  });

  const resolved = (name: string): string => `getent ahostsv4 ${name} | awk '{print $1}' | sort -u`;
  /** Asks the DNS of the cluster. */
  const dnsConfigOf = (searches: readonly string[]) => ({
    nameservers: ['10.96.0.10'],
    ...{ searches, options: [{ name: 'ndots', value: '5' }] },
  });
  const lookup = (name: string, type = 'A'): string => `dig +search +short ${name} ${type} | sort`;

  test('DNS should provide DNS for the cluster, for services, and resolve partial qualified names', async () => {
    const from = await execPod();
    await says(from, lookup('kubernetes.default'), '10.96.0.1');
    const { clusterIP = '', clusterIPs = [] } = await pods.service(
      'web',
      { ipFamilyPolicy: 'RequireDualStack', ports: [{ name: 'http', port: 80 }] },
      0,
    );
    const { namespace } = pods;
    for (const name of [
      'web',
      `web.${namespace}`,
      `web.${namespace}.svc`,
      `web.${namespace}.svc.cluster.local`,
    ]) {
      await says(from, lookup(name), clusterIP);
      await says(from, lookup(name, 'AAAA'), clusterIPs[1] ?? '');
    }
    const full = `web.${namespace}.svc.cluster.local.`;
    await pods.service('single', { ports: [{ name: 'http', port: 80 }] }, 0);
    await says(
      from,
      lookup(`_http._tcp.single.${namespace}.svc.cluster.local.`, 'SRV'),
      `0 100 80 single.${namespace}.svc.cluster.local.`,
    );
    await says(from, `dig +short -x ${clusterIP}`, full);
    await says(from, `dig +tcp +short ${full} A`, clusterIP);
    expect(await output(from, `dig no-such.${namespace}.svc.cluster.local. | grep -o NXDOMAIN`)).toBe(
      'NXDOMAIN',
    );
  });

  test('DNS should provide DNS for headless services, and for pods for Hostname and Subdomain', async () => {
    const from = await execPod();
    await pods.service('headless', { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] }, 0);
    await pods.pod(
      'querier',
      'headless',
      { ports },
      { spec: { hostname: 'querier-2', subdomain: 'headless' } },
    );
    const [pod] = await pods.running('headless', 1);
    const address = pod?.status.podIP ?? '';
    await says(from, lookup('headless'), address);
    await says(from, lookup(`querier-2.headless.${pods.namespace}.svc`), address);
    await says(from, `dig +short -x ${address}`, `querier-2.headless.${pods.namespace}.svc.cluster.local.`);
  });

  test('DNS should provide DNS for ExternalName services', async () => {
    const from = await execPod();
    await pods.service('ext', { type: 'ExternalName', externalName: 'foo.example.com' }, 80);
    await says(from, lookup('ext', 'CNAME'), 'foo.example.com.');
    const { status } = await pods.call('PATCH', `${pods.path('services')}/ext`, {
      spec: { externalName: 'bar.example.com' },
    });
    expect(status).toBe(200);
    await says(from, lookup('ext', 'CNAME'), 'bar.example.com.');
  });

  test('DNS should support configurable pod DNS nameservers, and resolver', async () => {
    const from = await execPod('own', {
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['1.1.1.1'],
        searches: ['resolv.conf.local'],
        options: [{ name: 'ndots', value: '2' }],
      },
    });
    expect(await output(from, 'cat /etc/resolv.conf')).toBe(
      'search resolv.conf.local\nnameserver 1.1.1.1\noptions ndots:2',
    );
  });

  test('DNS HostNetwork should resolve DNS of partial qualified names for services on hostNetwork pods with dnsPolicy: ClusterFirstWithHostNet', async () => {
    const from = await execPod('host', { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' });
    const { clusterIP = '' } = await pods.service('dns-test-service', { ports: [{ port: 80 }] }, 80);
    const { namespace } = pods;
    for (const suffix of ['', `.${namespace}`, `.${namespace}.svc`])
      await says(from, lookup(`dns-test-service${suffix}`), clusterIP);
    // Without that policy, a Pod of the node asks as the node does.
    const other = await execPod('plain', { hostNetwork: true });
    expect(await output(other, lookup('dns-test-service'))).not.toBe(clusterIP);
  });

  test('DNS should work with the pod containing more than 6 DNS search paths and longer than 256 search list characters', async () => {
    const { clusterIP = '' } = await pods.service('dns-test-service', { ports: [{ port: 80 }] }, 80);
    // That of the Service comes last, behind more than six paths and 256 characters.
    const searches = [
      ...Array.from({ length: 6 }, (_, i) => `${'x'.repeat(50)}.n${i}.cluster.local`),
      `${pods.namespace}.svc.cluster.local`,
    ];
    const from = await execPod('searching', { dnsPolicy: 'None', dnsConfig: dnsConfigOf(searches) });
    expect(searches.join(' ').length).toBeGreaterThan(256);
    expect(await output(from, 'grep ^search /etc/resolv.conf')).toBe(`search ${searches.join(' ')}`);
    await says(from, lookup('dns-test-service'), clusterIP);
    await says(from, resolved('dns-test-service'), clusterIP);
  });

  test('DNS should work with a search path containing an underscore and a search path with a single dot', async () => {
    const { clusterIP = '' } = await pods.service('dns-test-service', { ports: [{ port: 80 }] }, 80);
    const searches = ['.', '_sip._tcp.abc_d.example.com', `${pods.namespace}.svc.cluster.local`];
    const from = await execPod('searching', { dnsPolicy: 'None', dnsConfig: dnsConfigOf(searches) });
    expect(await output(from, 'grep ^search /etc/resolv.conf')).toBe(`search ${searches.join(' ')}`);
    // dig ends at the first path whose server does not answer, which is outside of the cluster here.
    await says(from, resolved('dns-test-service'), clusterIP);
    await says(from, resolved('kubernetes.default.svc.cluster.local'), '10.96.0.1');
  });

  test('Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath', async () => {
    await pods.pod('agnhost', 'agnhost', { ports });
    await pods.service('agnhost', { ports: [{ name: 'portname', port: 80, targetPort: 8083 }] }, 0);
    await pods.running('agnhost', 1);
    const methods = ['DELETE', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'GET'];
    for (const target of ['pods/agnhost:8083', 'services/agnhost:portname', 'services/http:agnhost:80']) {
      for (const method of methods) {
        const path = `${pods.path(target)}/proxy/some/path/with/${method}`;
        const answer = await until(
          () => pods.call(method, path),
          ({ status }) => status === 200,
        );
        expect(answer.body).toMatchObject({ method, path: `/some/path/with/${method}`, pod: 'agnhost' });
      }
    }
  });

  test('HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol', async () => {
    const [address = ''] = await pods.addressesOf('node-1');
    const hostPort = 54_323;
    const spec = { nodeName: 'node-1' };
    const own = (changes: object) => ({ ports: [{ containerPort: 8080, hostPort, ...changes }] });
    await pods.pod('pod1', 'port', own({ hostIP: '127.0.0.1' }), { spec });
    await pods.pod('pod2', 'port', own({ hostIP: address }), { spec });
    await pods.pod('pod3', 'port', own({ hostIP: address, protocol: 'UDP' }), { spec });
    await pods.running('port', 3);
    for (const where of [{ node: 'node-1' }, { node: 'node-2' }, { outside: true }] as const) {
      await answering(where, `http://${address}:${hostPort}`, ['pod2']);
      await answeringUdp(where, address, hostPort, ['pod3']);
    }
  });

  test('[Feature:IPv6DualStack] should have ipv4 and ipv6 node podCIDRs, podIPs and hostIPs, and host ports in both', async () => {
    await pods.pod('both', 'both', { ports: [{ containerPort: 80, hostPort: 8099 }] });
    const [pod] = await pods.running('both', 1);
    const isV6 = (address: string): boolean => address.includes(':');
    const families = [false, true];
    expect((pod?.status.podIPs ?? []).map(({ ip }) => isV6(ip))).toEqual(families);
    expect((pod?.status.hostIPs ?? []).map(({ ip }) => isV6(ip))).toEqual(families);
    for (const { ip } of pod?.status.hostIPs ?? [])
      await answering({ outside: true }, `http://${inUrl(ip)}:8099`, ['both']);
    await pods.pod('host', 'host', { ports: [{ containerPort: 8098 }] }, { spec: { hostNetwork: true } });
    const [onHost] = await pods.running('host', 1);
    expect(onHost?.status.podIPs).toEqual(onHost?.status.hostIPs);
    for (const { ip } of onHost?.status.podIPs ?? [])
      await answering({ outside: true }, `http://${inUrl(ip)}:8098`, ['host']);
  });

  test('Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service', async () => {
    const from = await execPod();
    const { clusterIP = '' } = await pods.service(
      'udp',
      { ports: [{ name: 'udp', protocol: 'UDP', port: 80, targetPort: 8081 }] },
      0,
    );
    await pods.pod('pod-server-1', 'udp', { ports });
    await answeringUdp(from, clusterIP, 80, ['pod-server-1']);
    // One flow, of one source port: it must move to the second Pod.
    const flow = `exec 3<>/dev/udp/${clusterIP}/80; for i in $(seq 200); do printf hostname >&3; n=$(timeout 1 dd bs=512 count=1 status=none <&3); [ "$n" = pod-server-2 ] && echo moved && exit; sleep 0.1; done`;
    const moved = output(from, flow);
    await pods.pod('pod-server-2', 'udp', { ports });
    await pods.running('udp', 2);
    await pods.delete('pods', 'pod-server-1');
    expect(await moved).toBe('moved');
  });

  test('Conntrack should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service', async () => {
    const from = await execPod();
    const target = (targetPort: number) => ({
      ports: [{ name: 'udp', protocol: 'UDP', port: 80, targetPort, nodePort: 30_099 }],
    });
    await pods.service('udp', { type: 'NodePort', ...target(8081) }, 0);
    await pods.pod('pod-server-1', 'udp', { ports });
    const [node = ''] = await pods.addressesOf('node-1');
    await answeringUdp(from, node, 30_099, ['pod-server-1']);
    // One flow, of one source port: nothing listens at its new target, whatever has been answered before.
    const change = (port: number): string =>
      `kubectl patch service -n ${pods.namespace} udp -p '${JSON.stringify({ spec: target(port) })}' >&2`;
    const flow = [
      `exec 3<>/dev/udp/${node}/30099`,
      'ask() { printf hostname >&3; [ "$(timeout 2 dd bs=512 count=1 status=none <&3)" = pod-server-1 ]; }',
      'until ask; do sleep 0.1; done; echo answered',
      change(8089),
      'for lost in 1 2 3; do while ask; do sleep 0.1; done; done; echo lost',
      change(8081),
      'until ask; do sleep 0.1; done; echo back',
    ];
    expect(await output(from, `timeout 90 bash -c ${quoted(flow.join('\n'))}`)).toBe('answered\nlost\nback');
  });

  it.each(['PreferClose', 'PreferSameZone', 'PreferSameNode'])(
    'Traffic Distribution should route traffic to an endpoint that is near when using %s, and fall back when it becomes unavailable',
    (trafficDistribution) =>
      inNamespace(async () => {
        // The nodes are in two zones.
        for (const node of ['node-1', 'node-2'])
          await pods.pod(`on-${node}`, 'web', { ports }, { spec: { nodeName: node } });
        await pods.running('web', 2);
        await pods.service('web', { trafficDistribution }, 8083);
        const near = await execPod('near', { nodeName: 'node-1' });
        await answering(near, 'http://web', ['on-node-1']);
        await answering(await execPod('far', { nodeName: 'node-2' }), 'http://web', ['on-node-2']);
        await pods.delete('pods', 'on-node-1');
        await answering(near, 'http://web', ['on-node-2']);
      }),
  );
});
