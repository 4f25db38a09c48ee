/** Annotations that mean the same, ours first: the first that is present counts. */
export interface AnnotationNames {
  readonly addresses: readonly string[];
  readonly pool: readonly string[];
  readonly sharingKey: readonly string[];
  readonly sharingNamespaces: readonly string[];
}

const own: AnnotationNames = {
  addresses: ['servicenet.dev/addresses'],
  pool: ['servicenet.dev/pool'],
  sharingKey: ['servicenet.dev/sharing-key'],
  sharingNamespaces: ['servicenet.dev/sharing-namespaces'],
};

/** MetalLB (both prefixes), kube-vip, PureLB and Cilium (both prefixes), as their documentation has them. */
const withCompat: AnnotationNames = {
  addresses: [
    ...own.addresses,
    'metallb.io/loadBalancerIPs',
    'metallb.universe.tf/loadBalancerIPs',
    'kube-vip.io/loadbalancerIPs',
    'purelb.io/addresses',
    'lbipam.cilium.io/ips',
    'io.cilium/lb-ipam-ips',
  ],
  pool: [
    ...own.pool,
    'metallb.io/address-pool',
    'metallb.universe.tf/address-pool',
    'purelb.io/service-group',
  ],
  sharingKey: [
    ...own.sharingKey,
    'metallb.io/allow-shared-ip',
    'metallb.universe.tf/allow-shared-ip',
    'purelb.io/allow-shared-ip',
    'lbipam.cilium.io/sharing-key',
    'io.cilium/lb-ipam-sharing-key',
  ],
  sharingNamespaces: [
    ...own.sharingNamespaces,
    'lbipam.cilium.io/sharing-cross-namespace',
    'io.cilium/lb-ipam-sharing-cross-namespace',
  ],
};

export function annotationNames(compat: boolean): AnnotationNames {
  return compat ? withCompat : own;
}

/** What an annotation says; both are "" where none is set. */
export interface ReadAnnotation {
  readonly name: string;
  readonly value: string;
}

/** The first annotation that is set; a problem where another one contradicts it. */
export function firstAnnotation(
  annotations: Readonly<Record<string, string>> | undefined,
  names: readonly string[],
  problems: string[],
): ReadAnnotation {
  const present = names.filter((name) => annotations !== undefined && Object.hasOwn(annotations, name));
  const [first] = present;
  if (first === undefined || annotations === undefined) return { name: '', value: '' };
  const value = (annotations[first] ?? '').trim();
  const other = present.find((name) => (annotations[name] ?? '').trim() !== value);
  // Ours may overrule what an earlier load balancer left behind; two of theirs that differ are a guess.
  if (other !== undefined && !first.startsWith('servicenet.dev/')) {
    problems.push(`has annotations ${first} and ${other}, which contradict each other`);
  }
  return { name: first, value };
}
