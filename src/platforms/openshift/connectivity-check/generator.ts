import type { Endpoints, Node, Pod, Service } from '../../../objects/types/core.generated.ts';
import type { PodNetworkConnectivityCheck } from '../../../objects/types/openshift.ts';
import { joinHostPort } from '../../../objects/address.ts';
import { isNotFound } from '../../../client/errors.ts';
import {
  connectivityChecks,
  endpoints as endpointsResource,
  nodes as nodesResource,
  pods as podsResource,
  services as servicesResource,
} from '../../../client/resources.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { keyOf, type KubeObject } from '../../../objects/meta.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import { Controller } from '../../../runtime/key-loop.ts';
import { whereServed } from '../../../runtime/other-implementations.ts';

/**
 * The PodNetworkConnectivityChecks that there should be (cluster-network-operator
 * `pkg/controller/connectivitycheck`): from each source Pod to each target. PURE.
 */

/** The namespace of the checks, of their source Pods and of `network-check-target`. */
const diagnosticsNamespace = 'openshift-network-diagnostics';
/** The label by which checks that this generator made are recognised, and deleted when obsolete. */
const managedBy = {
  label: 'networking.openshift.io/managedBy',
  value: 'oc-connectivity-check-controller',
} as const;

const source = 'network-check-source';
const target = 'network-check-target';

/** Objects by their keys. */
type Found<T> = Pick<ReadonlyMap<string, T>, 'get'>;

/** The objects from which checks are made. Keys are `namespace/name`. */
export interface CheckInputs {
  readonly pods: Iterable<Pod>;
  readonly nodes: Found<Node>;
  readonly services: Found<Service>;
  readonly endpoints: Found<Endpoints>;
}

/** A place that is checked, and the end of the names of its checks. */
interface Target {
  readonly name: string;
  readonly endpoint: string;
}

/** The checks, without a status. */
export function wantedChecks(inputs: CheckInputs): readonly PodNetworkConnectivityCheck[] {
  const targets = targetsOf(inputs);
  const sources = [...inputs.pods].filter(
    ({ metadata: { namespace, labels }, spec }) =>
      namespace === diagnosticsNamespace && labels?.['app'] === source && (spec.nodeName ?? '') !== '',
  );
  return sources.flatMap((pod) => {
    const nodeName = pod.spec.nodeName ?? '';
    const node = inputs.nodes.get(nodeName);
    // Without its Node, the check would have no owner.
    if (node === undefined) return [];
    return targets.map(({ name, endpoint }) => ({
      apiVersion: 'controlplane.operator.openshift.io/v1alpha1',
      kind: 'PodNetworkConnectivityCheck',
      metadata: {
        namespace: diagnosticsNamespace,
        name: `${source}-${nodePart(nodeName)}-to-${name}`,
        labels: { [managedBy.label]: managedBy.value },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.metadata.uid ?? '' }],
      },
      spec: { sourcePod: pod.metadata.name ?? '', targetEndpoint: endpoint },
    }));
  });
}

function targetsOf({ services, endpoints }: CheckInputs): readonly Target[] {
  const kubernetes = services.get('default/kubernetes')?.spec.clusterIPs ?? [];
  return [
    ...kubernetes.map((address, index) => ({
      name: `kubernetes-default-service-cluster-${index}`,
      endpoint: joinPort(address, 443),
    })),
    ...apiServer(services, endpoints, 'openshift-kube-apiserver/apiserver', 'kubernetes-apiserver'),
    ...apiServer(services, endpoints, 'openshift-apiserver/api', 'openshift-apiserver'),
    ...(services.get(`${diagnosticsNamespace}/${target}`) !== undefined
      ? [{ name: `${target}-service-cluster`, endpoint: `${target}:80` }]
      : []),
    ...addressesOf(endpoints.get(`${diagnosticsNamespace}/${target}`), target),
  ];
}

/** The Service of an API server, and each of its endpoints. */
function apiServer(
  services: CheckInputs['services'],
  endpoints: CheckInputs['endpoints'],
  key: string,
  name: string,
): readonly Target[] {
  const spec = services.get(key)?.spec;
  const clusterIP = spec?.clusterIP ?? '';
  const port = spec?.ports?.find(({ targetPort }) => targetPort === 6443)?.port ?? 443;
  return [
    ...(clusterIP === '' || clusterIP === 'None'
      ? []
      : [{ name: `${name}-service-cluster`, endpoint: joinPort(clusterIP, port) }]),
    ...addressesOf(endpoints.get(key), `${name}-endpoint`),
  ];
}

function addressesOf(endpoints: Endpoints | undefined, prefix: string): readonly Target[] {
  return (endpoints?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) =>
    addresses.flatMap(({ ip, nodeName }) =>
      ports.map(({ port }) => ({
        name: `${prefix}-${nodePart(nodeName ?? ip)}`,
        endpoint: joinPort(ip, port),
      })),
    ),
  );
}

/** The first label of a name; an address with dashes. */
function nodePart(name: string): string {
  const isAddress = name.includes(':') || /^[\d.]+$/.test(name);
  return isAddress ? name.replaceAll(/[.:]/g, '-') : (name.split('.')[0] ?? name);
}

function joinPort(address: string, port: number): string {
  return joinHostPort(address, port);
}

/** Milliseconds in which changes are gathered. */
const gather = 500;
/** The one key of the work queue. */
const everything = 'checks';

const name = 'connectivity-check-controller';

/**
 * Keeps a PodNetworkConnectivityCheck from each Pod with the label `app=network-check-source` to each target, and
 * deletes obsolete ones that it made.
 */
export const connectivityCheckGenerator: ControllerDefinition = { name, start };

function start(context: ControllerContext): readonly Runnable[] {
  const { informers } = context;
  const checks = informers.informer(connectivityChecks);
  const pods = informers.informer(podsResource);
  const nodes = informers.informer(nodesResource);
  const services = informers.informer(servicesResource);
  const endpoints = informers.informer(endpointsResource);
  const client = context.clients.for(connectivityChecks);

  const reconcile = async (_key: string, signal: AbortSignal): Promise<undefined> => {
    const wanted = new Map(
      wantedChecks({
        pods: pods.cache.values(),
        nodes: nodes.cache,
        services: services.cache,
        endpoints: endpoints.cache,
      }).map((check) => [keyOf(check), check]),
    );
    for (const [key, check] of wanted) {
      const present = checks.cache.get(key);
      if (present !== undefined && jsonEqual(present.spec, check.spec)) continue;
      await client.applyPatch(check, { fieldManager: name, force: true, signal });
    }
    for (const check of checks.cache.values()) {
      const { namespace = '', name: own = '', labels, uid } = check.metadata;
      if (namespace !== diagnosticsNamespace || labels?.[managedBy.label] !== managedBy.value) continue;
      if (wanted.has(keyOf(check)) || uid === undefined) continue;
      try {
        await client.delete(namespace, own, { preconditions: { uid }, signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    return undefined;
  };

  const controller = new Controller({
    name: 'connectivity_checks',
    ...{ context, reconcile, workers: 1 },
    waitFor: [checks, pods, nodes, services, endpoints],
  });
  const follow = <T extends KubeObject>(informer: Informer<T>, concerns: (object: T) => boolean): void => {
    const changed = (object: T): void => {
      if (concerns(object)) controller.enqueue(everything, { after: gather });
    };
    informer.addHandler({ added: changed, updated: changed, deleted: changed });
  };
  const inNamespaces = ({ metadata: { namespace = '' } }: KubeObject): boolean =>
    [diagnosticsNamespace, 'default', 'openshift-kube-apiserver', 'openshift-apiserver'].includes(namespace);
  follow(checks, inNamespaces);
  follow(pods, ({ metadata }) => metadata.namespace === diagnosticsNamespace);
  follow(services, inNamespaces);
  follow(endpoints, inNamespaces);
  nodes.addHandler({ added: () => controller.enqueue(everything, { after: gather }) });
  return [
    whereServed(context, {
      resource: connectivityChecks,
      work: 'connectivity checks',
      runnables: [controller],
    }),
  ];
}
