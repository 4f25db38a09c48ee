import { afterAll, beforeAll, expect, it } from 'vitest';
import { readEgressRouter, redirectOf } from '../../../src/network/egress/egress-router.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

/** What EgressRouters lead to: addresses of the outside machine, which also is their gateway. */
const destinations = ['203.0.113.26', '203.0.113.27', '203.0.113.28', '2001:db8:9::26'];

/** Connections through the Pods of EgressRouters, real packets each. */
describePods('EgressRouters', () => {
  let pods: PodNetwork;
  let serving: Promise<unknown> = Promise.resolve();

  beforeAll(async () => {
    pods = await PodNetwork.start({
      platform: 'openshift',
      serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112',
    });
    for (const address of destinations) {
      const prefix = address.includes(':') ? '128' : '32';
      await outside(
        'ip',
        'address',
        'add',
        `${address}/${prefix}`,
        'dev',
        'lo',
        ...(prefix === '128' ? ['nodad'] : []),
      );
    }
    // The program ends with its namespace, which `run` rejects for.
    serving = Promise.allSettled([outside(process.execPath, '-e', answerEverywhere, ...destinations)]);
  });
  afterAll(async () => {
    await pods.server.stop();
    await serving;
  });

  const outside = (...words: readonly string[]) => pods.server.run(words, { outside: true });

  /** A namespace with a client, an EgressRouter and a Service of its Pod. */
  async function routed(
    namespace: string,
    address: { readonly ip: string; readonly gateway: string },
    redirect: object,
    ipFamilies: ('IPv4' | 'IPv6')[] = ['IPv4'],
  ): Promise<Routed> {
    const own = await pods.inNamespace(namespace);
    const made = await own.call('POST', own.path('egressrouters', 'network.operator.openshift.io/v1'), {
      ...{ apiVersion: 'network.operator.openshift.io/v1', kind: 'EgressRouter', metadata: { name: 'out' } },
      spec: { addresses: [address], redirect },
    });
    expect(made.status).toBe(201);
    await own.pod('client', 'client', {});
    await own.running('client', 1);
    const { clusterIP = '' } = await own.service('egress-router-cni', { ipFamilies, ports }, 80);
    await own.running('egress-router-cni', 1);
    return new Routed(own, clusterIP);
  }

  it('lead rule ports to their destinations from their own address, and refuse all others', async () => {
    const router = await routed('rules', { ip: '192.0.2.10/24', gateway: '192.0.2.1' }, { redirectRules });
    expect(await router.ask('tcp', 8080)).toBe('203.0.113.26 80 from 192.0.2.10');
    expect(await router.ask('tcp', 8443)).toBe('203.0.113.27 443 from 192.0.2.10');
    // Without a target port, the port stays.
    expect(await router.ask('udp', 80)).toBe('203.0.113.26 80 from 192.0.2.10');
    // Of the protocol of no rule; of no rule at all.
    for (const port of [80, 9000]) {
      const url = `http://${router.clusterIP}:${port}`;
      expect(await router.pods.isRefused(router.client, url)).toBe(true);
    }
    await until(
      () => router.conditions(),
      (conditions) => conditions === 'Available=True, Degraded=False',
    );
  });

  it('lead all other ports to the fallback; a running Pod keeps what it was started with', async () => {
    const router = await routed('fallback', { ip: '192.0.2.20/24', gateway: '192.0.2.1' }, { redirectRules });
    const { path } = router;
    await router.pods.call('PATCH', path, { spec: { redirect: { fallbackIP: '203.0.113.28' } } });
    await until(
      () => router.configuration(),
      (text) => text.includes('"fallbackIP":"203.0.113.28"'),
    );
    expect(await router.pods.isRefused(router.client, `http://${router.clusterIP}:9000`)).toBe(true);
    await router.restart();
    expect(await router.ask('tcp', 9000)).toBe('203.0.113.28 9000 from 192.0.2.20');
    for (const protocol of ['tcp', 'udp'] as const) {
      for (const port of servedPorts) {
        const planned = await router.planned(protocol, port);
        expect(await router.ask(protocol, port)).toBe(`${planned} from 192.0.2.20`);
      }
    }
  });

  it('lead everything to the fallback where there are no rules', async () => {
    const router = await routed(
      'only-fallback',
      { ip: '192.0.2.30/24', gateway: '192.0.2.1' },
      { fallbackIP: '203.0.113.27' },
    );
    expect(await router.ask('tcp', 8080)).toBe('203.0.113.27 8080 from 192.0.2.30');
  });

  it('work in IPv6', async () => {
    const router = await routed(
      'six',
      { ip: '2001:db8:2::10/64', gateway: '2001:db8:2::1' },
      { redirectRules: [{ port: 8080, protocol: 'TCP', destinationIP: '2001:db8:9::26', targetPort: 80 }] },
      ['IPv6'],
    );
    expect(await router.ask('tcp', 8080)).toBe('2001:db8:9::26 80 from 2001:db8:2::10');
    expect(await router.pods.isRefused(router.client, `http://[${router.clusterIP}]:9000`)).toBe(true);
  });

  it('have no Pod with an address that is none, which its Events and the status say', async () => {
    const own = await pods.inNamespace('invalid');
    await own.call('POST', own.path('egressrouters', 'network.operator.openshift.io/v1'), {
      ...{ apiVersion: 'network.operator.openshift.io/v1', kind: 'EgressRouter', metadata: { name: 'out' } },
      spec: { addresses: [{ ip: '192.0.2.40', gateway: '192.0.2.1' }], redirect: {} },
    });
    const router = new Routed(own, '');
    await until(
      () => router.conditions(),
      (conditions) => conditions === 'Available=False, Degraded=True',
    );
    const messages = async (): Promise<readonly string[]> =>
      listAt((await own.call('GET', own.path('events'))).body, 'items')
        .filter((event) => textAt(event, 'reason') === 'FailedCreatePodSandBox')
        .map((event) => textAt(event, 'message'));
    await until(messages, (found) => found.some((text) => text.includes('invalid CIDR address')));
  });
});

const redirectRules = [
  { port: 8080, protocol: 'TCP', destinationIP: '203.0.113.26', targetPort: 80 },
  { port: 8443, protocol: 'TCP', destinationIP: '203.0.113.27', targetPort: 443 },
  { port: 80, protocol: 'UDP', destinationIP: '203.0.113.26' },
];
const servedPorts = [80, 8080, 8443, 9000];
const ports = servedPorts.flatMap((port) =>
  (['TCP', 'UDP'] as const).map((protocol) => ({
    ...{ name: `${protocol.toLowerCase()}-${port}`, protocol, port, targetPort: port },
  })),
);

/** A namespace with an EgressRouter `out`, a Pod `client`, and a Service of the router's Pod. */
class Routed {
  readonly pods: PodNetwork;
  readonly clusterIP: string;
  readonly client: { readonly pod: string };
  readonly path: string;

  constructor(pods: PodNetwork, clusterIP: string) {
    this.pods = pods;
    this.clusterIP = clusterIP;
    this.client = { pod: `${pods.namespace}/client` };
    this.path = `${pods.path('egressrouters', 'network.operator.openshift.io/v1')}/out`;
  }

  /** Which address and port answer, and from where they see the connection. */
  async ask(protocol: 'tcp' | 'udp', port: number): Promise<string> {
    const script =
      protocol === 'tcp'
        ? `curl -s --max-time 2 http://${inUrl(this.clusterIP)}:${port}`
        : `exec 3<>/dev/udp/${this.clusterIP}/${port}; echo >&3; timeout 2 head -n 1 <&3`;
    const asking = async (): Promise<string> =>
      (await this.pods.server.run(['bash', '-c', script], this.client)).stdout.trim();
    return await until(asking, (text) => text !== '');
  }

  /** `Available=True, …` */
  async conditions(): Promise<string> {
    const { body } = await this.pods.call('GET', this.path);
    return listAt(body, 'status', 'conditions')
      .map((each) => `${textAt(each, 'type')}=${textAt(each, 'status')}`)
      .join(', ');
  }

  async configuration(): Promise<string> {
    const path = this.pods.path('network-attachment-definitions', 'k8s.cni.cncf.io/v1');
    return textAt((await this.pods.call('GET', `${path}/egress-router-cni-nad`)).body, 'spec', 'config');
  }

  /** Where the plan of the configuration leads a port: `address port`, or `rejected`. */
  async planned(protocol: 'tcp' | 'udp', port: number): Promise<string> {
    const config: unknown = JSON.parse(await this.configuration());
    const plan = readEgressRouter(isRecord(config) ? config : {});
    if ('problem' in plan) throw new Error(plan.problem);
    const found = redirectOf(plan, protocol === 'tcp' ? 'TCP' : 'UDP', port);
    return found.verdict === 'rejected' ? found.verdict : `${found.destination} ${found.port}`;
  }

  /** Deletes the Pod, and waits for the next one. */
  async restart(): Promise<void> {
    const [pod] = await this.pods.running('egress-router-cni', 1);
    const name = pod?.metadata.name ?? '';
    await this.pods.delete('pods', `${name}?gracePeriodSeconds=0`);
    await until(
      () => this.pods.running('egress-router-cni', 1),
      ([next]) => next?.metadata.name !== name,
    );
  }
}

/** At these addresses, answers with the address and port that were asked, and who asks; ends by itself after 10 minutes. */
const answerEverywhere = `
const ports = [80, 443, 8080, 8443, 9000];
const say = (address, port, from) => address + ' ' + port + ' from ' + from + '\\n';
for (const address of process.argv.slice(1)) {
  for (const port of ports) {
    require('node:http')
      .createServer((request, response) => response.end(say(address, port, request.socket.remoteAddress)))
      .listen(port, address);
    const udp = require('node:dgram').createSocket(address.includes(':') ? 'udp6' : 'udp4');
    udp.on('message', (_, from) => udp.send(say(address, port, from.address), from.port, from.address));
    udp.bind(port, address);
  }
}
setTimeout(() => process.exit(1), 600_000);
`;
