/** A cluster for e2e tests, and what their suite asks of it before the first (test/e2e/e2e.go). */
import type { JsonRecord } from '../../src/objects/json.ts';
import { conditionStatus, listAt, recordAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer, type TestServerOptions } from '../../src/testing/index.ts';
import { createTestingNamespace } from './e2e-framework.ts';
import { TypedClient } from './typed-client.ts';
import { type Kind, TypedResource } from './typed-resource.ts';

const kind = (apiVersion: string, name: string, plural: string): Kind => ({
  ...{ apiVersion, kind: name, plural },
});

/** The kinds that e2e tests ask for. */
export const kinds = {
  bindings: kind(
    'admissionregistration.k8s.io/v1',
    'ValidatingAdmissionPolicyBinding',
    'validatingadmissionpolicybindings',
  ),
  configMaps: kind('v1', 'ConfigMap', 'configmaps'),
  csiStorageCapacities: kind('storage.k8s.io/v1', 'CSIStorageCapacity', 'csistoragecapacities'),
  daemonSets: kind('apps/v1', 'DaemonSet', 'daemonsets'),
  deployments: kind('apps/v1', 'Deployment', 'deployments'),
  endpoints: kind('v1', 'Endpoints', 'endpoints'),
  endpointSlices: kind('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices'),
  events: kind('v1', 'Event', 'events'),
  flowSchemas: kind('flowcontrol.apiserver.k8s.io/v1', 'FlowSchema', 'flowschemas'),
  ingressClasses: kind('networking.k8s.io/v1', 'IngressClass', 'ingressclasses'),
  ingresses: kind('networking.k8s.io/v1', 'Ingress', 'ingresses'),
  ipAddresses: kind('networking.k8s.io/v1', 'IPAddress', 'ipaddresses'),
  namespaces: kind('v1', 'Namespace', 'namespaces'),
  networkPolicies: kind('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
  nodes: kind('v1', 'Node', 'nodes'),
  pods: kind('v1', 'Pod', 'pods'),
  policies: kind(
    'admissionregistration.k8s.io/v1',
    'ValidatingAdmissionPolicy',
    'validatingadmissionpolicies',
  ),
  priorityLevels: kind(
    'flowcontrol.apiserver.k8s.io/v1',
    'PriorityLevelConfiguration',
    'prioritylevelconfigurations',
  ),
  replicaSets: kind('apps/v1', 'ReplicaSet', 'replicasets'),
  replicationControllers: kind('v1', 'ReplicationController', 'replicationcontrollers'),
  runtimeClasses: kind('node.k8s.io/v1', 'RuntimeClass', 'runtimeclasses'),
  serviceAccounts: kind('v1', 'ServiceAccount', 'serviceaccounts'),
  serviceCidrs: kind('networking.k8s.io/v1', 'ServiceCIDR', 'servicecidrs'),
  services: kind('v1', 'Service', 'services'),
} as const;

/** A server, a client of it, and the namespaces that tests made. */
export class E2eCluster {
  readonly server: TestServer;
  readonly client: TypedClient;

  private constructor(server: TestServer) {
    this.server = server;
    this.client = new TypedClient(server);
  }

  /** A cluster of simulated nodes that the suite would find ready. */
  static async start(options: TestServerOptions = {}): Promise<E2eCluster> {
    const cluster = new E2eCluster(await startApiServer({ nodes: 3, ...options }));
    await cluster.waitForAllNodesSchedulable(options.nodes ?? 3);
    return cluster;
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.server.stop();
  }

  /** @param namespace undefined: cluster-scoped, or all namespaces. */
  resource(name: keyof typeof kinds, namespace?: string): TypedResource {
    return new TypedResource(this.client, kinds[name], namespace);
  }

  /** `Framework.BeforeEach`: a namespace, and what the control plane puts into it. Returns its name. */
  async namespace(baseName: string): Promise<string> {
    return createTestingNamespace(this.client, baseName);
  }

  /** `WaitForAllNodesSchedulable`: asks again sooner than every 30 s. */
  async waitForAllNodesSchedulable(count: number): Promise<void> {
    const query = { resourceVersion: '0', fieldSelector: 'spec.unschedulable=false' };
    await poll(async () => {
      const nodes = listAt(await this.resource('nodes').list(query), 'items');
      return nodes.length === count && nodes.every(isSchedulable);
    });
  }

  /** `GetReadySchedulableNodes`, in the order of the list. */
  async readySchedulableNodes(): Promise<readonly JsonRecord[]> {
    const list = await this.resource('nodes').list({ fieldSelector: 'spec.unschedulable=false' });
    return listAt(list, 'items')
      .map((node) => recordAt(node))
      .filter((node) => isSchedulable(node) && listAt(node, 'spec', 'taints').length === 0);
  }
}

/** `IsNodeSchedulable`. */
function isSchedulable(node: unknown): boolean {
  const conditions = listAt(node, 'status', 'conditions');
  const network = conditionStatus(conditions, 'NetworkUnavailable') ?? 'False';
  return conditionStatus(conditions, 'Ready') === 'True' && network === 'False';
}

/** Asks until it is so, soon at first and then every 200 ms; the test's timeout bounds it. */
export async function poll(ask: () => Promise<boolean>): Promise<void> {
  for (let pause = 10; !(await ask()); pause = Math.min(1.5 * pause, 200)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
