import { writeFile } from 'node:fs/promises';
import { createServer, type Server, Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Clock } from '../client/clock.ts';
import { createTransport } from '../client/connect.ts';
import type { Informer } from '../client/informers/informer.ts';
import {
  networkAttachmentDefinitions,
  nodes as nodesResource,
  pods as podsResource,
  services as servicesResource,
} from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import {
  connectivityCheckerController,
  type CheckNetwork,
} from '../platforms/openshift/connectivity-check/checker.ts';
import { checkerName } from '../platforms/catalog.ts';
import { kubeletController } from '../controllers/kubelet/controller.ts';
import { type ControllerGroup, runControllers } from '../controllers/run.ts';
import { budgetEvents } from '../controllers/workloads/event-budget.ts';
import { forwardingSelectors } from '../node/forwarding/agent.ts';
import { trimService } from '../node/forwarding/view.ts';
import { parseCidr } from '../objects/address.ts';
import type { Pod, Service } from '../objects/types/core.generated.ts';
import { joinKey, keyOf } from '../objects/meta.ts';
import { podsOfWorkload } from '../objects/pods.ts';
import { connectSocket, listenWith } from '../host/sockets.ts';
import { entries } from '../paths.ts';
import type { ControllerContext } from '../runtime/context.ts';
import { runnableOf } from '../runtime/key-loop.ts';
import {
  cgroupsVariable,
  type NetworkAnswer,
  type NetworkCall,
  type NetworkLocation,
  type StartConfig,
  type Target,
  insideKubeconfigPath,
} from './protocol.ts';
import { ClientPods, lookUpInPod } from './client-pods.ts';
import { clusterDomain, ClusterDns, ClusterRouter } from './addons.ts';
import type { FlowNews } from '../network/flows/flow.ts';
import type { ForwardingOptions } from '../network/forwarding/node-plan.ts';
import type { FlowCollector, FlowNode } from '../node/flows/flow-collector.ts';
import { Images } from './containers/images.ts';
import { SandboxRuntime } from './containers/sandbox-runtime.ts';
import { KubeletApi } from './kubelet-api/kubelet-api.ts';
import { controlPlaneAddresses, lanCidrs } from './lan.ts';
import { NamespaceSandboxes } from './machines/namespace-sandboxes.ts';
import { OnLinkPools, LanGateways } from './machines/lan.ts';
import type { ProgramImages } from './program.ts';
import { BuiltInPrograms } from './programs/built-in-programs.ts';
import { PodInterfaces } from './machines/pod-interfaces.ts';
import { announceCaches, SimulatedNodes } from './machines/simulated-nodes.ts';
import { MetricsApi } from './metrics-api.ts';
import type { PodResponses } from './pod-server.ts';

/**
 * The process inside the network: machines, the kubelet, and the access for `up`. It has the control plane's place
 * on the LAN.
 */
export class NetworkProcess {
  readonly #config: StartConfig;
  readonly #nodes: SimulatedNodes;
  readonly #sandboxes: NamespaceSandboxes;
  readonly #runtime: SandboxRuntime;
  readonly #kubeletApi: KubeletApi;
  readonly #pods: Informer<Pod>;
  readonly #services: Informer<Service>;
  readonly #clientPods: ClientPods;
  readonly #dns: ClusterDns;
  readonly #router: ClusterRouter;
  readonly #context: ControllerContext;
  readonly #onFlows: (viewer: number, news: FlowNews) => void;
  /** From the first viewer on. */
  #flows: Promise<FlowCollector> | undefined;
  /** What ends the look of each viewer. */
  readonly #viewers = new Map<number, () => Promise<void>>();

  private constructor(
    config: StartConfig,
    images: ProgramImages,
    context: ControllerContext,
    transport: Transport,
    onResponses: (responses: PodResponses) => void,
    onFlows: (viewer: number, news: FlowNews) => void,
  ) {
    this.#context = context;
    this.#config = config;
    this.#onFlows = onFlows;
    this.#pods = context.informers.informer(podsResource);
    this.#services = context.informers.informer(servicesResource, { transform: trimService });
    this.#nodes = new SimulatedNodes(context, {
      forwarding: {
        families: config.families,
        masqueradeAll: false,
        nodePortAddresses: 'primary',
        podDetection: { by: 'cidr', cidrs: config.clusterCidrs.flatMap((cidr) => parseCidr(cidr) ?? []) },
        allowExternalIPs: true,
      },
      serve: async ({ name, host, addresses }) => this.#kubeletApi.listen(host, addresses, name),
      isUserspace: config.forwarding === 'userspace',
      clusterRanges: [...config.clusterCidrs, ...config.serviceCidrs],
    });
    const interfaces = new PodInterfaces({
      definitions: context.informers.informer(networkAttachmentDefinitions),
      lans: this.#nodes.lans,
      clusterRanges: [...config.clusterCidrs, ...config.serviceCidrs],
      isUserspace: config.forwarding === 'userspace',
    });
    this.#sandboxes = new NamespaceSandboxes(this.#nodes, interfaces);
    this.#router = new ClusterRouter(context, transport, controlPlaneAddresses(config.families), {
      routes: config.hasRoutes,
      gateways: config.hasGateways,
    });
    this.#dns = new ClusterDns(
      context,
      transport,
      controlPlaneAddresses(config.families),
      config.serviceCidrs.flatMap((cidr) => parseCidr(cidr) ?? []),
    );
    this.#runtime = new SandboxRuntime({
      networks: this.#sandboxes,
      claimsFolder: config.claimsFolder,
      cgroups: process.env[cgroupsVariable] ?? '',
      images: new Images(new Map(config.images), images),
      builtIn: new BuiltInPrograms({ entry: entries.builtInPrograms, log: context.log, onResponses }),
      runsProcesses: config.containers !== 'off',
      view: config.containers === 'processes' ? 'whole' : 'programs',
      hostPaths: {
        isWritable: config.writableHostPaths,
        roots: config.containers === 'processes' ? undefined : config.hostPathRoots,
      },
      resolvConfOf: (pod) => this.#dns.resolvConfOf(pod),
      lookUp: (pod, host, name, signal) =>
        lookUpInPod({ host, clock: context.clock }, this.#dns.resolvConfOf(pod), name, signal),
      log: context.log,
    });
    const nodes = context.informers.informer(nodesResource);
    this.#kubeletApi = new KubeletApi({
      runtime: this.#runtime,
      pod: (namespace, name) => this.#pods.cache.get(joinKey(namespace, name)),
      node: (name) => {
        const node = nodes.cache.get(joinKey('', name));
        if (node === undefined) return undefined;
        return { node, pods: [...this.#pods.cache.values()].filter(({ spec }) => spec.nodeName === name) };
      },
      ...{ tls: config.kubeletTls, client: config.kubeletTls.client },
      ...{ now: () => context.clock.now(), log: context.log },
    });
    this.#clientPods = new ClientPods(context);
  }

  /**
   * Starts everything.
   *
   * @param socketPath leads to the API server without TLS; undefined: there is no such way.
   * @param images those that are programs of ours.
   * @param onResponses is called with what Pods have answered.
   * @param onFlows is called with what there is for one who looks at flows.
   * @returns what answers calls, and the server that listens for the API server: to be handed to it.
   */
  static async start(
    config: StartConfig,
    socketPath: string | undefined,
    images: ProgramImages,
    log: Logger,
    onResponses: (responses: PodResponses) => void,
    onFlows: (viewer: number, news: FlowNews) => void,
  ): Promise<{ network: NetworkProcess; listener: Server }> {
    const { port, ca, token } = config.server;
    await writeFile(insideKubeconfigPath, config.kubeconfig, { mode: 0o600 });
    const [address = ''] = controlPlaneAddresses(config.families);
    // Does not accept: the API server does, once it has the descriptor.
    const listener = createServer({ pauseOnConnect: true });
    await listenWith(listener, { port, host: address });
    const host = address.includes(':') ? `[${address}]` : address;
    const url = `https://${host}:${port}`;
    const transport = await createTransport({ kind: 'endpoint', url, ca, token, socketPath });
    const started = Promise.withResolvers<NetworkProcess>();
    const cluster: ControllerGroup = {
      name: 'emulation',
      eventSource: 'kubelet',
      start(full) {
        const context = { ...full, events: budgetEvents(full.events, full.clock) };
        const metrics = new MetricsApi(context, controlPlaneAddresses(config.families), config.kubeletTls);
        const tellResponses = (responses: PodResponses): void => {
          metrics.answered(responses);
          onResponses(responses);
        };
        const network = new NetworkProcess(config, images, context, transport, tellResponses, onFlows);
        started.resolve(network);
        const services = (): Iterable<Service> => network.#services.cache.values();
        const { awaitsNetworks, missingImages } = config;
        const pods = kubeletController({
          runtime: network.#runtime,
          services,
          awaitsNetworks,
          missingImages,
        });
        const ofPods = config.kubelet ? [runnableOf(pods, context)] : [];
        const onLink = config.forwarding === 'userspace' ? [] : [new OnLinkPools(context)];
        const taken = [...config.clusterCidrs, ...config.serviceCidrs, ...lanCidrs(config.families)];
        const gateways = new LanGateways(context, network.#nodes.lans, taken);
        return [
          network.#nodes,
          network.#dns,
          network.#router,
          network.#clientPods,
          metrics,
          gateways,
          ...onLink,
          ...ofPods,
        ];
      },
    };
    const checker: ControllerGroup = {
      name: checkerName,
      eventSource: 'check-endpoints',
      start(context) {
        const network = started.promise;
        const networkOf = async (pod: Pod) => (await network).#networkOf(pod, context.clock);
        return [runnableOf(connectivityCheckerController({ networkOf }), context)];
      },
    };
    runControllers({
      transport,
      log,
      labelSelectors: { ...forwardingSelectors, ...announceCaches.labelSelectors },
      namespaces: announceCaches.namespaces,
      controllers: [cluster, ...(config.checksEndpoints ? [checker] : [])],
    });
    return { network: await started.promise, listener };
  }

  /** Answers all calls but the first two. @throws {Error} with a `code` where the system gave one. */
  async answer(call: Exclude<NetworkCall, { call: 'own-way' | 'start' }>): Promise<NetworkAnswer> {
    switch (call.call) {
      case 'complete':
        await this.#nodes.complete(this.#config.nodes);
        return {};
      case 'dial':
        return { handle: await dial(call.address, call.port) };
      case 'dial-service': {
        const { address, port } = this.#portOf(call.namespace, call.name, call.port);
        return { handle: await dial(address, port) };
      }
      case 'locate':
        return { result: await this.#locate(call.target) };
      case 'release':
        if (call.location.client !== undefined) await this.#clientPods.remove(call.location.client);
        return {};
      case 'watch-flows': {
        const { viewer, filter, last } = call;
        this.#flows ??= this.#openFlows();
        const tell = (news: FlowNews): void => this.#onFlows(viewer, news);
        const { known, end } = await (await this.#flows).watch(filter, tell);
        this.#viewers.set(viewer, end);
        return { result: last === 0 ? [] : known.slice(-last) };
      }
      case 'see': {
        const { seenOnNodes } = await import('../node/flows/node-flows.ts');
        return { result: await seenOnNodes([...this.#nodes.machines()], call.connection) };
      }
      case 'leave-flows':
        await this.#viewers.get(call.viewer)?.();
        this.#viewers.delete(call.viewer);
        return {};
    }
  }

  /** Loaded with the first viewer. @throws {Error} where there can be no flows. */
  async #openFlows(): Promise<FlowCollector> {
    const { families, forwarding, clusterCidrs, serviceCidrs } = this.#config;
    if (forwarding === 'userspace') {
      throw new Error(
        'there are no flows where Services are forwarded in userspace: install the package nftables',
      );
    }
    const { FlowCollector } = await import('../node/flows/flow-collector.ts');
    const { informers, clock, log } = this.#context;
    const nodes = (): readonly FlowNode[] => {
      const machines = [...this.#nodes.machines()];
      return machines.map((machine) => ({
        ...{ name: machine.name, host: machine.host },
        elsewhere: machines.flatMap((each) =>
          each === machine ? [] : [...each.addresses, ...each.podCIDRs],
        ),
      }));
    };
    const options: ForwardingOptions = {
      ...{ families, masqueradeAll: false, nodePortAddresses: 'primary', allowExternalIPs: true },
      serviceCIDRs: serviceCidrs.flatMap((cidr) => parseCidr(cidr) ?? []),
      podDetection: { by: 'cidr', cidrs: clusterCidrs.flatMap((cidr) => parseCidr(cidr) ?? []) },
    };
    return new FlowCollector({
      ...{ informers, clock, log, nodes, families, forwarding: () => options, hasPolicies: true },
      ...{ controlPlane: controlPlaneAddresses(families), domain: clusterDomain },
      onDnsAnswer: (tell) => {
        this.#dns.onAnswer = tell;
      },
      onRefusedRequest: (tell) => {
        this.#router.onRefused = tell;
      },
    });
  }

  #portOf(namespace: string, name: string, port: string): { address: string; port: number } {
    const service = this.#services.cache.get(`${namespace}/${name}`);
    const [address = ''] = service?.spec.clusterIPs ?? [];
    const found = service?.spec.ports?.find((one) => one.name === port || String(one.port) === port);
    if (found === undefined || address === '' || address === 'None') {
      throw new Error(`there is no Service ${namespace}/${name} with a cluster IP and a port ${port}`);
    }
    return { address, port: found.port };
  }

  async #locate(target: Target): Promise<NetworkLocation> {
    switch (target.kind) {
      case 'outside':
        return { namespace: 'outside' };
      case 'node': {
        const machine = this.#nodes.get(target.name);
        if (machine === undefined) throw new Error(`there is no node ${target.name}`);
        return { namespace: machine.namespace.name };
      }
      case 'pod': {
        const pod = this.#pods.cache.get(`${target.namespace}/${target.name}`);
        if (pod === undefined)
          throw new Error(`there is no Pod ${target.name} in namespace ${target.namespace}`);
        return await this.#inPod(pod);
      }
      case 'workload': {
        const { workload: kind, namespace, name } = target;
        const [pod] = podsOfWorkload([...this.#pods.cache.values()], { kind, namespace, name });
        if (pod === undefined)
          throw new Error(`there is no Pod of ${kind} ${name} in namespace ${namespace}`);
        return await this.#inPod(pod);
      }
      case 'client': {
        const pod = await this.#clientPods.create(target.namespace);
        return { ...(await this.#inPod(pod)), client: pod.metadata.uid ?? '' };
      }
    }
  }

  #networkOf(pod: Pod, clock: Clock): CheckNetwork | undefined {
    const host = this.#sandboxes.get(pod)?.host;
    if (host === undefined) return undefined;
    return {
      connect: (address, port, signal) => host.connect(address, port, { signal }),
      lookUp: (name, signal) => lookUpInPod({ host, clock }, this.#dns.resolvConfOf(pod), name, signal),
    };
  }

  async #inPod(pod: Pod): Promise<NetworkLocation> {
    const { uid = '' } = pod.metadata;
    const namespace = this.#sandboxes.namespaceOf(pod);
    if (namespace === undefined) {
      throw new Error(`Pod ${keyOf(pod)} does not run: its phase is ${pod.status.phase ?? 'Pending'}`);
    }
    // Made when asked for: programs run in few Pods.
    const resolvConf = `/run/resolv.conf-${uid}`;
    await writeFile(resolvConf, this.#dns.resolvConfOf(pod));
    return { namespace, resolvConf };
  }
}

/** @throws the system's error. */
async function dial(address: string, port: number): Promise<Socket> {
  // Paused: bytes that are read here would be missing at the receiver.
  return await connectSocket(new Socket().pause(), { host: address, port });
}
