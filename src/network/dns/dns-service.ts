import { formatAddress, type ParsedCidr } from '../../objects/address.ts';
import { slicesWithoutPods } from '../../objects/endpoints.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { joinKey, type ObjectKey } from '../../objects/meta.ts';

const namespace = 'kube-system';
const name = 'kube-dns';

/** The Service by which Pods reach the DNS of their cluster, whichever program answers there. */
export const dnsServiceKey: ObjectKey = joinKey(namespace, name);

const ports = [
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'dns-tcp', protocol: 'TCP', port: 53 },
] as const;

/** The address of kube-dns in a Service range: the tenth, as kubeadm has it (`GetDNSIP`). */
export function dnsAddress({ family, network }: ParsedCidr): string {
  return formatAddress(family, network + 10n);
}

/**
 * The Service kube-dns without a selector, and its EndpointSlices: one a family, for a DNS server that is no Pod.
 *
 * @param serviceRanges the Service ranges, the primary family first.
 * @param addresses where the server answers.
 * @param port where it answers, by UDP and TCP.
 */
export function dnsServiceObjects(
  serviceRanges: readonly ParsedCidr[],
  addresses: readonly string[],
  port: number,
): { readonly service: Service; readonly slices: readonly EndpointSlice[] } {
  const clusterIPs = serviceRanges.map(dnsAddress);
  const families = serviceRanges.map(({ family }) => family);
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace,
      labels: {
        'k8s-app': 'kube-dns',
        'kubernetes.io/cluster-service': 'true',
        'kubernetes.io/name': 'CoreDNS',
      },
    },
    spec: {
      ...(clusterIPs[0] === undefined ? {} : { clusterIP: clusterIPs[0] }),
      clusterIPs,
      ipFamilies: families,
      ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
      ports: ports.map((each) => ({ ...each, targetPort: port })),
    },
    status: {},
  };
  const slicePorts = ports.map((each) => ({ ...each, port }));
  const slices = slicesWithoutPods({ name, namespace }, 'servicenet-dns', families, addresses, slicePorts);
  return { service, slices };
}
