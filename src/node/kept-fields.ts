/** The fields of objects in the agent's caches: a cluster has hundreds of thousands of endpoints. */
import type { Container, Node, Pod, Service } from '../objects/types/core.generated.ts';
import type { Endpoint, EndpointConditions, EndpointSlice } from '../objects/types/discovery.generated.ts';
import type { KubeObject } from '../objects/meta.ts';

/** The time of the change behind a slice (RFC 3339), written by the controller of the slice. */
export const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time';

/** A Service without annotations and selector. */
export function keptOfService(service: Service): Service {
  const { selector: _, ...spec } = service.spec;
  return { ...service, metadata: keptOfMetadata(service), spec };
}

export function keptOfSlice(slice: EndpointSlice): EndpointSlice {
  return {
    ...slice,
    metadata: keptOfMetadata(slice),
    endpoints: slice.endpoints?.map(keptOfEndpoint) ?? null,
  };
}

/** A Node without images, volumes, capacity and conditions: most of it, and new every few minutes. */
export function keptOfNode(node: Node): Node {
  const { podCIDRs, taints } = node.spec;
  const { addresses } = node.status;
  return {
    ...node,
    metadata: keptOfMetadata(node),
    spec: { ...(podCIDRs === undefined ? {} : { podCIDRs }), ...(taints === undefined ? {} : { taints }) },
    status: addresses === undefined ? {} : { addresses },
  };
}

/** A Pod as policies see it: labels, addresses, names of ports. */
export function keptOfPod(pod: Pod): Pod {
  const { annotations: _annotations, managedFields: _managedFields, ...metadata } = pod.metadata;
  const { nodeName, hostNetwork, initContainers, containers } = pod.spec;
  const { phase, podIP, podIPs } = pod.status;
  const spec = {
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(hostNetwork === undefined ? {} : { hostNetwork }),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(keptOfContainer) }),
    ...(containers === undefined ? {} : { containers: containers.map(keptOfContainer) }),
  };
  const status = {
    ...(phase === undefined ? {} : { phase }),
    ...(podIP === undefined ? {} : { podIP }),
    ...(podIPs === undefined ? {} : { podIPs }),
  };
  return { ...pod, metadata, spec, status };
}

function keptOfContainer({ name, ports, restartPolicy }: Container): Container {
  return {
    name,
    ...(ports === undefined ? {} : { ports }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  };
}

/** Identity and owners, and the labels and the annotation that are read. */
function keptOfMetadata({ metadata }: KubeObject): KubeObject['metadata'] {
  const { annotations, labels, generateName: _, ...kept } = metadata;
  const triggered = annotations?.[triggerTime];
  const readLabels = Object.entries(labels ?? {}).filter(([name]) => keptLabels.has(name));
  return {
    ...kept,
    ...(readLabels.length === 0 ? {} : { labels: Object.fromEntries(readLabels) }),
    ...(triggered === undefined ? {} : { annotations: { [triggerTime]: triggered } }),
  };
}

const keptLabels: ReadonlySet<string> = new Set([
  'kubernetes.io/service-name',
  'service.kubernetes.io/headless',
  'service.kubernetes.io/service-proxy-name',
  'topology.kubernetes.io/zone',
]);

function keptOfEndpoint({ addresses, conditions, hints, nodeName }: Endpoint): Endpoint {
  return {
    addresses: addresses.slice(0, 1),
    ...(conditions === undefined ? {} : { conditions: sharedConditions(conditions) }),
    ...(hints === undefined ? {} : { hints }),
    ...(nodeName === undefined ? {} : { nodeName: sharedName(nodeName) }),
  };
}

/** There are 27 at most. */
const conditionsByText = new Map<string, EndpointConditions>();

function sharedConditions(conditions: EndpointConditions): EndpointConditions {
  const { ready, serving, terminating } = conditions;
  const text = `${ready} ${serving} ${terminating}`;
  const known = conditionsByText.get(text) ?? conditions;
  conditionsByText.set(text, known);
  return known;
}

/** Names of nodes. They are forgotten when there are more than in the largest clusters. */
const names = new Map<string, string>();
const maxNames = 20_000;

function sharedName(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  if (names.size >= maxNames) names.clear();
  names.set(name, name);
  return name;
}
