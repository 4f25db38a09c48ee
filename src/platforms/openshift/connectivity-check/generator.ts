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
import { jsonEqual } from '../../../objects/json.ts';
import { keyOf, type KubeObject, type ObjectKey } from '../../../objects/meta.ts';
import type { Change, ControllerSpec } from '../../../runtime/key-loop.ts';

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

/** Milliseconds in which changes become one pass. */
const batchMs = 500;
/** The one key of the work queue. */
const everything = 'checks';

const name = 'connectivity-check-controller';

/**
 * Keeps a PodNetworkConnectivityCheck from each Pod with the label `app=network-check-source` to each target, and
 * deletes obsolete ones that it made.
 */
export const connectivityCheckController: ControllerSpec = {
  name,
  eventSource: 'connectivity-check-controller',
  queue: 'connectivity_checks',
  workers: 1,
  where: { serves: connectivityChecks, work: 'connectivity checks' },
  build(loop) {
    const client = loop.context.clients.for(connectivityChecks);
    const checks = loop.cache(connectivityChecks);
    const pods = loop.cache(podsResource);
    const nodes = loop.cache(nodesResource);
    const services = loop.cache(servicesResource);
    const endpoints = loop.cache(endpointsResource);

    const wakeWhere =
      (concerns: (object: KubeObject) => boolean) =>
      ({ object }: Change<KubeObject>): readonly ObjectKey[] => {
        if (concerns(object)) loop.enqueue(everything, { afterMs: batchMs });
        return [];
      };
    const inNamespaces = ({ metadata: { namespace = '' } }: KubeObject): boolean =>
      [diagnosticsNamespace, 'default', 'openshift-kube-apiserver', 'openshift-apiserver'].includes(
        namespace,
      );
    loop.on(checks, wakeWhere(inNamespaces));
    loop.on(
      pods,
      wakeWhere(({ metadata }) => metadata.namespace === diagnosticsNamespace),
    );
    loop.on(services, wakeWhere(inNamespaces));
    loop.on(endpoints, wakeWhere(inNamespaces));
    loop.on(nodes, ({ kind }) => {
      if (kind === 'added') loop.enqueue(everything, { afterMs: batchMs });
      return [];
    });

    return async (_key, signal) => {
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
  },
};
