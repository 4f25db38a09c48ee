import { compareText } from '../../objects/go-text.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { IngressLoadBalancerIngress } from '../../objects/types/networking.generated.ts';
import type { RouteIngress, RouteStatus } from '../../objects/types/route.generated.ts';
import type { RouteAdmission } from './route-claims.ts';

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
