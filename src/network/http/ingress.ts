import type {
  Ingress,
  IngressClass,
  IngressLoadBalancerIngress,
} from '../../objects/types/networking.generated.ts';
import { compareText } from '../../objects/formats/go-text.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { Route, RouteIngress, RouteStatus } from '../../objects/types/route.generated.ts';
import type { RouteAdmission } from './route-claims.ts';
import type { IPFamily } from '../../objects/address.ts';
import { slicesWithoutPods } from '../../objects/endpoints.ts';
import { joinKey, type ObjectKey } from '../../objects/meta.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';

/** `spec.controller` of the IngressClasses that are ours. */
export const ingressController = 'servicenet.dev/router';

/** `spec.controller` of the IngressClasses whose Ingresses OpenShift makes Routes of. */
export const ingressToRouteController = 'openshift.io/ingress-to-route';

/** The way to name a class before Kubernetes 1.18. The field goes before it. */
export const classAnnotation = 'kubernetes.io/ingress.class';

/** Which Ingresses a router serves. */
export interface IngressSelection {
  /** The class that `kubernetes.io/ingress.class` has to name, which needs no IngressClass object. */
  readonly className: string;
  /** Whether Ingresses that name no class are served. */
  readonly withoutClass: boolean;
}

/**
 * Whether an Ingress is ours, as ingress-nginx decides: by the class that it names, which has to exist and to be ours;
 * else by the annotation; else, where it names no class at all, by the router's flag. Where the cluster has a default
 * class, the API server has written it into the Ingress.
 *
 * @param classOf looks an IngressClass up by its name.
 */
export function isServedIngress(
  { metadata, spec }: Pick<Ingress, 'metadata' | 'spec'>,
  { className, withoutClass }: IngressSelection,
  classOf: (name: string) => IngressClass | undefined,
): boolean {
  const { ingressClassName = '' } = spec;
  if (ingressClassName !== '') return classOf(ingressClassName)?.spec.controller === ingressController;
  const annotated = metadata.annotations?.[classAnnotation];
  return annotated === undefined ? withoutClass : annotated === className;
}

/**
 * The addresses that an Ingress gets from the router's Service, as ingress-nginx has them (`--publish-service`): of a
 * LoadBalancer its status and externalIPs, of a NodePort the externalIPs or else the cluster IP, of a ClusterIP the cluster
 * IP, of an ExternalName its name.
 *
 * @returns sorted, without duplicates.
 */
export function publishedAddresses({
  spec,
  status,
}: Pick<Service, 'spec' | 'status'>): IngressLoadBalancerIngress[] {
  const external = (spec.externalIPs ?? []).map((ip) => ({ ip }));
  const cluster = spec.clusterIP === undefined || spec.clusterIP === 'None' ? [] : [{ ip: spec.clusterIP }];
  switch (spec.type ?? 'ClusterIP') {
    case 'ExternalName':
      return spec.externalName === undefined ? [] : [{ hostname: spec.externalName }];
    case 'LoadBalancer': {
      const balanced = (status.loadBalancer?.ingress ?? []).map(({ ip, hostname }) =>
        ip === undefined ? { hostname: hostname ?? '' } : { ip },
      );
      return sorted([...balanced, ...external]);
    }
    case 'NodePort':
      return sorted(external.length > 0 ? external : cluster);
    default:
      return cluster;
  }
}

/** Sorted, without duplicates. */
export function sorted(addresses: readonly IngressLoadBalancerIngress[]): IngressLoadBalancerIngress[] {
  const textOf = ({ ip = '', hostname = '' }: IngressLoadBalancerIngress): string => `${ip} ${hostname}`;
  const byText = new Map(addresses.map((address) => [textOf(address), address]));
  return [...byText].sort(([a], [b]) => compareText(a, b)).map(([, address]) => address);
}

/** The router that writes a status entry. */
export interface RouterIdentity {
  readonly name: string;
  /** The target of Routes' DNS names; "" for none. */
  readonly canonicalHostname: string;
}

/**
 * The status of a Route with our entry; those of other routers stay. An entry that is already the same keeps its
 * time (`status.go` of the router of OpenShift).
 *
 * @param admission undefined: our entry is removed.
 * @param now RFC 3339, for `lastTransitionTime`.
 */
export function routeStatus(
  { ingress = [] }: RouteStatus,
  router: RouterIdentity,
  admission: (RouteAdmission & { readonly wildcardPolicy: string }) | undefined,
  now: string,
): RouteStatus {
  const at = ingress.findIndex(({ routerName }) => routerName === router.name);
  const others = ingress.filter(({ routerName }) => routerName !== router.name);
  if (admission === undefined) return at === -1 ? { ingress } : { ingress: others };
  const { host, refusal, wildcardPolicy } = admission;
  const entry: RouteIngress = {
    ...{ host, routerName: router.name, wildcardPolicy },
    ...(router.canonicalHostname === '' ? {} : { routerCanonicalHostname: router.canonicalHostname }),
    conditions: [
      refusal === undefined
        ? { type: 'Admitted', status: 'True', lastTransitionTime: now }
        : { type: 'Admitted', status: 'False', ...refusal, lastTransitionTime: now },
    ],
  };
  const old = ingress[at];
  if (old !== undefined && textOfEntry(old) === textOfEntry(entry)) return { ingress };
  // The position of an entry means nothing; a stable one makes small patches.
  return { ingress: at === -1 ? [...ingress, entry] : ingress.map((one, i) => (i === at ? entry : one)) };
}

/** All of an entry but its time. */
function textOfEntry(entry: RouteIngress): string {
  const { host = '', wildcardPolicy = '', routerCanonicalHostname = '', conditions = [] } = entry;
  const admitted = conditions.find(({ type }) => type === 'Admitted');
  const { status = '', reason = '', message = '' } = admitted ?? {};
  return JSON.stringify([host, wildcardPolicy, routerCanonicalHostname, status, reason, message]);
}

/** Prefixes of the annotations of other routers, which nothing here reads on an Ingress. */
const prefixes = ['nginx.ingress.kubernetes.io/', 'haproxy.router.openshift.io/'];
/** An Event has room for 1,024 characters. */
const maxNames = 10;

/**
 * The Event message about annotations for other routers, which have no effect here; undefined if there are none.
 * Values that ask for the default behaviour count too.
 */
export function ignoredAnnotations({ metadata }: Pick<Ingress, 'metadata'>): string | undefined {
  const names = Object.keys(metadata.annotations ?? {});
  return ignoredMessage(names.filter((name) => prefixes.some((prefix) => name.startsWith(prefix))).sort());
}

/** @param names of annotations, sorted. */
export function ignoredMessage(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const shown = names.slice(0, maxNames).join(', ');
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : '';
  return `these annotations have no effect: ${shown}${more}`;
}

/** The names of the Services that an object's requests go to. */
export function servicesOf({ spec }: Pick<Ingress, 'spec'> | Pick<Route, 'spec'>): string[] {
  const names =
    'to' in spec
      ? [spec.to, ...(spec.alternateBackends ?? [])].map(({ name }) => name)
      : [
          spec.defaultBackend,
          ...(spec.rules ?? []).flatMap(({ http }) => http?.paths ?? []).map(({ backend }) => backend),
        ].map((backend) => backend?.service?.name ?? '');
  return [...new Set(names)].filter((name) => name !== '').sort();
}

const namespace = 'kube-system';
const name = 'servicenet-router';

/**
 * The Service of type LoadBalancer where clients of a router come in, for one that runs in no Pod.
 *
 * @param families of the cluster, the first one first.
 * @param addresses where the router answers.
 * @param ports where it answers there.
 */
export function routerServiceObjects(
  families: readonly IPFamily[],
  addresses: readonly string[],
  { http, https }: { readonly http: number; readonly https: number },
): { readonly key: ObjectKey; readonly service: Service; readonly slices: readonly EndpointSlice[] } {
  const labels = { 'app.kubernetes.io/name': name };
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels },
    spec: {
      type: 'LoadBalancer',
      ipFamilies: [...families],
      ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: http },
        { name: 'https', protocol: 'TCP', port: 443, targetPort: https },
      ],
    },
    status: {},
  };
  const slices = slicesWithoutPods({ name, namespace, labels }, 'servicenet-router', families, addresses, [
    { name: 'http', protocol: 'TCP', port: http },
    { name: 'https', protocol: 'TCP', port: https },
  ]);
  return { key: joinKey(namespace, name), service, slices };
}
