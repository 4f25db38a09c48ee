/** The API part of e2e tests' `TestJig` (test/e2e/cluster/service/jig.go) and of their Pods and EndpointSlices. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { at, conditionStatus, listAt, numberAt, recordAt, textAt } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { type E2eCluster, poll } from './e2e-cluster.ts';

const agnhost = 'registry.k8s.io/e2e-test-images/agnhost:2.63.0';

/** A container of e2e tests; without arguments it only pauses. */
export function agnhostContainer(name: string, ports: readonly object[] = [], ...args: string[]): JsonRecord {
  return {
    ...{ name, image: agnhost, args: args.length === 0 ? ['pause'] : args },
    ...{ securityContext: {}, imagePullPolicy: 'IfNotPresent' },
    ...(ports.length === 0 ? {} : { ports }),
  };
}

/** What tests change of a Pod: labels, annotations and members of the spec. */
interface PodChanges {
  readonly labels?: JsonRecord;
  /** For simulated nodes: what the containers would do. */
  readonly annotations?: JsonRecord;
  readonly spec?: JsonRecord;
}

/** `NewAgnhostPod`. */
export function agnhostPod(
  name: string,
  containers: readonly JsonRecord[],
  changes: PodChanges = {},
): JsonRecord {
  const { labels = {}, annotations = {}, spec = {} } = changes;
  return {
    metadata: { name, labels, annotations },
    spec: { terminationGracePeriodSeconds: 0, containers, ...spec },
  };
}

/** `SetNodeSelection` to one node by its name. */
export function onNode(name: string): JsonRecord {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [name] }];
  const required = { nodeSelectorTerms: [{ matchFields }] };
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } };
}

/** A port of a Pod behind a Service, as EndpointSlices tell it. */
export interface PortMapping {
  readonly name: string;
  readonly protocol?: string;
  readonly target: string;
  readonly port: number;
}

export class ServiceJig {
  readonly cluster: E2eCluster;
  readonly namespace: string;
  readonly name: string;
  readonly labels: JsonRecord;

  constructor(cluster: E2eCluster, namespace: string, name: string) {
    this.cluster = cluster;
    this.namespace = namespace;
    this.name = name;
    this.labels = { testid: `${name}-${randomUUID()}` };
  }

  /** `CreateTCPService` and its like: one port 80 of TCP unless the spec says more. */
  async create(spec: JsonRecord = {}): Promise<JsonRecord> {
    const ports = [{ protocol: 'TCP', port: 80 }];
    return this.#make({ selector: this.labels, ports, ...spec });
  }

  async createExternalName(): Promise<JsonRecord> {
    return this.#make({ selector: this.labels, externalName: 'foo.example.com', type: 'ExternalName' });
  }

  async #make(spec: JsonRecord): Promise<JsonRecord> {
    const metadata = { namespace: this.namespace, name: this.name, labels: this.labels };
    const made = await this.cluster.resource('services', this.namespace).create({ metadata, spec });
    return sanityChecked(made, spec['type']);
  }

  /** `UpdateService`: gets, changes and puts, three times at most on a conflict. */
  async update(change: (spec: JsonRecord) => JsonRecord): Promise<JsonRecord> {
    return this.updateObject((service) => ({ ...service, spec: change(recordAt(service, 'spec')) }));
  }

  async updateObject(change: (service: JsonRecord) => JsonRecord): Promise<JsonRecord> {
    const services = this.cluster.resource('services', this.namespace);
    for (let tries = 1; ; tries++) {
      const service = change(await services.get(this.name));
      try {
        return sanityChecked(await services.update(service), at(service, 'spec', 'type'));
      } catch (error) {
        const again = error instanceof StatusError && ['Conflict', 'ServerTimeout'].includes(error.reason);
        if (!again || tries === 3) throw error;
      }
    }
  }

  /** `Run`, `CreateServicePods`: a Deployment behind the Service, complete. */
  async run(
    replicas: number,
    template: PodChanges & { containers?: readonly JsonRecord[] } = {},
    name = this.name,
  ): Promise<void> {
    await runDeployment(this.cluster, this.namespace, name, this.labels, replicas, template);
  }

  /** `createPodOrFail`, `CreateSync`: a Pod that is ready. */
  async pod(name: string, ports: readonly object[] = [], changes: PodChanges = {}): Promise<JsonRecord> {
    const env = [{ name: 'FOO', value: ' ' }];
    const container = { ...agnhostContainer('agnhost-container', ports, 'netexec'), env };
    return createSync(
      this.cluster,
      this.namespace,
      agnhostPod(name, [container], { labels: this.labels, ...changes }),
    );
  }

  /** `WaitForEndpointCount`: Slices are there, with so many addresses. */
  async endpointCount(count: number): Promise<void> {
    await this.slicesUntil((slices) => {
      const addresses = slices.flatMap((slice) =>
        listAt(slice, 'endpoints').map((each) => listAt(each, 'addresses')[0]),
      );
      return new Set(addresses).size === count;
    });
  }

  /** `WaitForEndpointPods`. */
  async endpointPods(...names: readonly string[]): Promise<void> {
    await this.slicesUntil((slices) => {
      const found = slices.flatMap((slice) =>
        listAt(slice, 'endpoints')
          .map((each) => recordAt(each, 'targetRef'))
          .filter(({ kind, namespace }) => kind === 'Pod' && namespace === this.namespace)
          .map((reference) => textAt(reference, 'name')),
      );
      return sameSet(found, names);
    });
  }

  /** `WaitForEndpointPorts`. */
  async endpointPorts(mappings: readonly PortMapping[]): Promise<void> {
    const wanted = mappings.map(({ name, protocol = 'TCP', target, port }) =>
      [name, protocol, target, port].join(),
    );
    await this.slicesUntil((slices) => sameSet(slices.flatMap(mappingsOf), wanted));
  }

  /** The Service's EndpointSlices once they are there and meet the condition. */
  async slicesUntil(condition: (slices: readonly JsonRecord[]) => boolean): Promise<readonly JsonRecord[]> {
    let slices: readonly JsonRecord[] = [];
    await poll(async () => {
      const labelSelector = `kubernetes.io/service-name=${this.name}`;
      const list = await this.cluster.resource('endpointSlices', this.namespace).list({ labelSelector });
      slices = listAt(list, 'items').filter(isRecord);
      return slices.length > 0 && condition(slices);
    });
    return slices;
  }
}

function mappingsOf(slice: JsonRecord): string[] {
  return listAt(slice, 'endpoints').flatMap((endpoint) =>
    listAt(slice, 'ports').map((port) =>
      [
        ...[textAt(port, 'name'), textAt(port, 'protocol'), textAt(endpoint, 'targetRef', 'name')],
        numberAt(port, 'port'),
      ].join(),
    ),
  );
}

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  new Set(a).size === new Set(b).size && a.every((each) => b.includes(each));

/** `sanityCheckService`. */
function sanityChecked(service: JsonRecord, wanted: unknown): JsonRecord {
  const spec = recordAt(service, 'spec');
  const type = wanted ?? 'ClusterIP';
  expect(spec['type']).toBe(type);
  if (type === 'ExternalName') expect(textAt(spec, 'clusterIP')).toBe('');
  else
    expect([textAt(spec, 'externalName'), textAt(spec, 'clusterIP')]).toEqual([
      '',
      expect.stringMatching(/./),
    ]);
  const needed =
    type === 'NodePort' || (type === 'LoadBalancer' && spec['allocateLoadBalancerNodePorts'] !== false);
  for (const port of listAt(spec, 'ports')) {
    const nodePort = numberAt(port, 'nodePort');
    expect(nodePort !== 0).toBe(needed);
    if (needed) expect(nodePort >= 30000 && nodePort <= 32767).toBe(true);
  }
  return service;
}

/** `CreateSync`: the Pod once it is running and ready. */
export async function createSync(
  cluster: E2eCluster,
  namespace: string,
  pod: JsonRecord,
): Promise<JsonRecord> {
  const pods = cluster.resource('pods', namespace);
  const name = textAt(await pods.create(pod), 'metadata', 'name');
  return podUntil(cluster, namespace, name, (found) => {
    const ready = conditionStatus(listAt(found, 'status', 'conditions'), 'Ready');
    return textAt(found, 'status', 'phase') === 'Running' && ready === 'True';
  });
}

/** `WaitForPodCondition`. */
export async function podUntil(
  cluster: E2eCluster,
  namespace: string,
  name: string,
  condition: (pod: JsonRecord) => boolean,
): Promise<JsonRecord> {
  let pod: JsonRecord = {};
  await poll(async () => condition((pod = await cluster.resource('pods', namespace).get(name))));
  return pod;
}

/** `DeletePodOrFail`: asks for it, does not wait. */
export async function deletePod(cluster: E2eCluster, namespace: string, name: string): Promise<void> {
  await cluster.resource('pods', namespace).delete(name);
}

/** `NewDeployment` and `WaitForDeploymentComplete`. Returns the names of its Pods, sorted. */
export async function runDeployment(
  cluster: E2eCluster,
  namespace: string,
  name: string,
  labels: JsonRecord,
  replicas: number,
  template: PodChanges & { containers?: readonly JsonRecord[] } = {},
): Promise<readonly string[]> {
  const {
    containers = [agnhostContainer(name, [], 'serve-hostname')],
    annotations = {},
    spec = {},
  } = template;
  const deployments = cluster.resource('deployments', namespace);
  await deployments.create({
    metadata: { name, labels },
    spec: {
      ...{ replicas, selector: { matchLabels: labels }, strategy: { type: 'Recreate' } },
      template: {
        metadata: { labels, annotations },
        spec: { terminationGracePeriodSeconds: 0, containers, ...spec },
      },
    },
  });
  await deploymentComplete(cluster, namespace, name);
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join();
  const pods = listAt(await cluster.resource('pods', namespace).list({ labelSelector }), 'items');
  return pods.map((pod) => textAt(pod, 'metadata', 'name')).sort();
}

/** `WaitForDeploymentComplete` (`DeploymentComplete` of pkg/controller/deployment/util). */
export async function deploymentComplete(
  cluster: E2eCluster,
  namespace: string,
  name: string,
): Promise<void> {
  await poll(async () => {
    const { metadata, spec, status } = await cluster.resource('deployments', namespace).get(name);
    const counts = ['updatedReplicas', 'replicas', 'availableReplicas'].map((each) => numberAt(status, each));
    const seen = numberAt(status, 'observedGeneration') >= numberAt(metadata, 'generation');
    return seen && counts.every((count) => count === numberAt(spec, 'replicas'));
  });
}
