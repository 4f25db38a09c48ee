import type { Pod } from '../../objects/types/core.generated.ts';
import type { PodNetwork } from '../machines/namespace-sandboxes.ts';

/** The host name of a container, in the network of its node that of the node, and its `/etc/hosts`. */
export function namesOf(
  pod: Pod,
  { node, addresses }: PodNetwork,
): { readonly hostname: string; readonly hosts: string } {
  const hostname = pod.spec.hostNetwork === true ? node.name : hostnameOf(pod);
  return { hostname, hosts: hostsFile(pod, addresses, hostname) };
}

/** `/etc/hosts` (pkg/kubelet/kubelet_pods.go `managedHostsFileContent`, `nodeHostsFileContent`). A node has no names. */
export function hostsFile(pod: Pod, addresses: readonly string[], hostname: string): string {
  const { subdomain = '', hostAliases = [] } = pod.spec;
  const domain =
    subdomain === '' ? '' : `${hostname}.${subdomain}.${pod.metadata.namespace ?? ''}.svc.cluster.local`;
  const names = domain === '' ? hostname : `${domain}\t${hostname}`;
  const isOfNode = pod.spec.hostNetwork === true;
  const own = isOfNode ? [] : addresses.map((address) => `${address}\t${names}`);
  const aliases = hostAliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join('\t')}`);
  return [
    ...[
      `# Kubernetes-managed hosts file${isOfNode ? ' (host network)' : ''}.`,
      '127.0.0.1\tlocalhost',
      '::1\tlocalhost ip6-localhost ip6-loopback',
    ],
    ...[
      'fe00::\tip6-localnet',
      'fe00::\tip6-mcastprefix',
      'fe00::1\tip6-allnodes',
      'fe00::2\tip6-allrouters',
    ],
    ...own,
    ...(aliases.length === 0 ? [] : ['', '# Entries added by HostAliases.', ...aliases]),
    '',
  ].join('\n');
}

/** The host name of a Pod (`GeneratePodHostNameAndDomain`). */
export function hostnameOf({ metadata, spec }: Pod): string {
  const name = spec.hostname ?? metadata.name ?? '';
  return name.slice(0, 63).replace(/(?<![-.])[-.]+$/, '');
}
