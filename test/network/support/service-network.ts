import type { Host } from '../../../src/host/host.ts';
import type { ForwardingPlan } from '../../../src/network/forwarding/forwarding-plan.ts';
import type { ForwardingNode, ForwardingOptions } from '../../../src/network/forwarding/node-plan.ts';
import { planForwarding } from '../../../src/network/forwarding/planner.ts';
import { NftablesWriter } from '../../../src/node/nftables/writer.ts';
import type { IPFamily } from '../../../src/objects/address.ts';
import type {
  LoadBalancerIngress,
  Service,
  ServicePort,
  ServiceSpec,
} from '../../../src/objects/types/core.generated.ts';
import type {
  EndpointConditions,
  EndpointHints,
  EndpointSlice,
} from '../../../src/objects/types/discovery.generated.ts';
import type { Labels } from '../../../src/objects/selectors/label-selector.ts';
import type { Maker } from './gate.ts';
import type { Asking } from './machine.ts';
import type { Outcome } from './machine-protocol.ts';
import { type Addresses, startNetwork, type TestNetwork } from './network.ts';
import { forwardingNode, forwardingOptions } from './objects.ts';

export const families = ['IPv4', 'IPv6'] as const satisfies readonly IPFamily[];

/** The cluster IPs of the Services of {@link ServiceNetwork.apply}, in their order. */
export const clusterIPs: readonly [Addresses, Addresses, Addresses] = [
  { IPv4: '10.96.0.10', IPv6: 'fd00:96::10' },
  { IPv4: '10.96.0.11', IPv6: 'fd00:96::11' },
  { IPv4: '10.96.0.12', IPv6: 'fd00:96::12' },
];

/** External IPs and addresses of load balancers: `outside` routes them to node-1. IPv6 ones are of the Service range. */
export const externalIPs: Addresses = { IPv4: '203.0.113.1', IPv6: 'fd00:96::e1' };
export const loadBalancerIPs: Addresses = { IPv4: '203.0.113.2', IPv6: 'fd00:96::e2' };

/** The addresses of both families. */
export function both(addresses: Addresses): string[] {
  return families.map((family) => addresses[family]);
}

/** Milliseconds in which a machine would have answered, or refused, were it not to stay silent. */
export const silence = 500;

/** A Pod behind a Service; ready unless it says otherwise. */
export interface Backend extends EndpointConditions {
  readonly pod: string;
  readonly hints?: EndpointHints;
}

/** A Service with the Pods behind it. It has the same name and port in both families. */
export interface Declared {
  /** Default `web`. */
  readonly name?: string;
  /** Default: of type ClusterIP, port 80 to 8080, TCP. */
  readonly spec?: ServiceSpec;
  readonly labels?: Labels;
  readonly sliceLabels?: Labels;
  readonly ingress?: readonly LoadBalancerIngress[];
  /** Names of Pods, or more about them. */
  readonly backends: readonly (string | Backend)[];
}

/** A Pod that ends: it serves until it is gone. */
export function terminating(pod: string): Backend {
  return { pod, ready: false, serving: true, terminating: true };
}

/** A Pod that does not answer its readiness probe. */
export function unready(pod: string): Backend {
  return { pod, ready: false, serving: false, terminating: false };
}

/** What makes a node forward as a plan says: nftables, or listeners of a process. */
export interface DataPath {
  sync(plan: ForwardingPlan): Promise<unknown>;
}

/** A cluster network (`network.ts`) whose nodes forward what is declared: plan and kernel, without an API server. */
export class ServiceNetwork {
  readonly #network: TestNetwork;
  readonly #nodes: ReadonlyMap<string, { readonly node: ForwardingNode; readonly dataPath: DataPath }>;
  readonly #nodeOf = new Map<string, string>();
  /** Each question is a flow of its own: a UDP flow that the kernel knows goes where it went. */
  #port = 20_000;

  private constructor(
    network: TestNetwork,
    pods: Readonly<Record<string, readonly string[]>>,
    zones: Readonly<Record<string, string>>,
    dataPathOf: (host: Host) => DataPath,
  ) {
    this.#network = network;
    this.#nodes = new Map(
      Object.entries(pods).map(([name, own]) => {
        for (const pod of own) this.#nodeOf.set(pod, name);
        const zone = zones[name];
        const labels = zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone };
        const { machine, addresses } = network.at(name);
        const node = { ...forwardingNode(name, addresses), labels };
        return [name, { node, dataPath: dataPathOf(machine.host) }] as const;
      }),
    );
  }

  /** @param pods by node. Each serves 8080 by TCP and UDP, and 8081 by TCP. */
  static async start(
    maker: Maker,
    pods: Readonly<Record<string, readonly string[]>>,
    zones: Readonly<Record<string, string>> = {},
    dataPathOf: (host: Host) => DataPath = (host) => new NftablesWriter({ host }),
  ): Promise<ServiceNetwork> {
    const network = await startNetwork(maker, pods);
    const served = Object.values(pods).flat();
    await Promise.all(
      served.map(async (pod) => {
        const { machine } = network.at(pod);
        await machine.serve(8080, 'TCP');
        await machine.serve(8080, 'UDP');
        await machine.serve(8081, 'TCP');
      }),
    );
    return new ServiceNetwork(network, pods, zones, dataPathOf);
  }

  /** Of a node, a Pod, or `outside`. */
  addresses(name: string): Addresses {
    return this.#network.at(name).addresses;
  }

  get network(): TestNetwork {
    return this.#network;
  }

  /** Makes these Services all that there are, on every node. */
  async apply(...declared: readonly Declared[]): Promise<void> {
    await this.applyWith({}, ...declared);
  }

  /** The same with options of the nodes that are not the usual ones. */
  async applyWith(options: Partial<ForwardingOptions>, ...declared: readonly Declared[]): Promise<void> {
    const services = declared.map(serviceOf);
    const slices = declared.flatMap((one) => families.map((family) => this.#sliceOf(one, family)));
    await this.applyObjects(services, slices, options);
  }

  /** The same for objects as they are. */
  async applyObjects(
    services: readonly Service[],
    slices: readonly EndpointSlice[],
    options: Partial<ForwardingOptions> = {},
  ): Promise<void> {
    const all = { ...forwardingOptions, ...options };
    await Promise.all(
      [...this.#nodes.values()].map(({ node, dataPath }) =>
        dataPath.sync(planForwarding(services, slices, node, all)),
      ),
    );
  }

  /** Asks from a machine, by a flow of its own unless `fromPort` names one. */
  ask(from: string, address: string, port = 80, asking: Asking = {}): Promise<Outcome> {
    const fromPort = ++this.#port;
    return this.#network.at(from).machine.ask(address, port, { fromPort, ...asking });
  }

  /** Who answers when a machine asks so many times at once; what is no answer is `refused` or `silence`. Sorted. */
  async answering(
    from: string,
    address: string,
    { port = 80, times = 30, ...asking }: Asking & { port?: number; times?: number } = {},
  ): Promise<readonly string[]> {
    const asked = Array.from({ length: times }, () => this.ask(from, address, port, asking));
    return [...new Set((await Promise.all(asked)).map(nameOf))].sort();
  }

  /** Who answers, as {@link answering}; waits long for an answer, and less where silence is expected. */
  expecting(
    from: string,
    address: string,
    port: number,
    expected: readonly string[],
  ): Promise<readonly string[]> {
    const times = expected.length > 1 ? 30 : 3;
    return this.answering(from, address, {
      port,
      times,
      ...(expected[0] === 'silence' ? { timeout: silence } : {}),
    });
  }

  close(): Promise<void> {
    return this.#network.close();
  }

  #sliceOf({ name = 'web', spec, sliceLabels, backends }: Declared, family: IPFamily): EndpointSlice {
    return {
      metadata: {
        namespace: 'shop',
        name: `${name}-${family.toLowerCase()}`,
        labels: { 'kubernetes.io/service-name': name, ...sliceLabels },
      },
      addressType: family,
      endpoints: backends.map((backend) => {
        const { pod, hints, ...conditions } = typeof backend === 'string' ? { pod: backend } : backend;
        const nodeName = this.#nodeOf.get(pod) ?? '';
        const addresses = [this.addresses(pod)[family]];
        return { addresses, conditions, nodeName, ...(hints === undefined ? {} : { hints }) };
      }),
      ports: (spec?.ports ?? [defaultPort]).map(
        ({ name: port = '', protocol = 'TCP', targetPort = 8080 }) => ({
          ...{ name: port, protocol, port: Number(targetPort) },
        }),
      ),
    };
  }
}

function nameOf(outcome: Outcome): string {
  return typeof outcome === 'string' ? outcome : outcome.name;
}

const defaultPort: ServicePort = { port: 80, targetPort: 8080 };

function serviceOf({ name = 'web', spec, labels = {}, ingress = [] }: Declared, index: number): Service {
  const own = clusterIPs[index];
  if (own === undefined) throw new Error('there are more Services than cluster IPs');
  return {
    metadata: { namespace: 'shop', name, labels },
    spec: {
      ...{ type: 'ClusterIP', clusterIP: own.IPv4, clusterIPs: [own.IPv4, own.IPv6], ports: [defaultPort] },
      ...spec,
    },
    status: { loadBalancer: { ingress: [...ingress] } },
  };
}
