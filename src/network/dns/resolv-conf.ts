import type { Pod, PodDNSConfig } from '../../objects/types/core.generated.ts';

/** The DNS settings of a node's kubelet. */
export interface ResolvConfOptions {
  /** `--cluster-dns`: the addresses of kube-dns; none: Pods get the node's. */
  readonly servers: readonly string[];
  /** `--cluster-domain`; "": no search list of the cluster. */
  readonly domain: string;
  /** The node's own resolv.conf (`--resolv-conf`). */
  readonly node: ResolvConf;
}

export interface ResolvConf {
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  /** `name` or `name:value`. */
  readonly options: readonly string[];
}

/** The file of a Pod, and what did not fit: the texts of the kubelet's Events of reason {@link formingReason}. */
export interface PodResolvConf {
  readonly text: string;
  readonly warnings: readonly { readonly reason: string; readonly message: string }[];
}

/** pkg/apis/core/validation: MaxDNSNameservers, MaxDNSSearchPaths, MaxDNSSearchListChars. */
const maxNameservers = 3;
const maxSearches = 32;
const maxSearchLine = 2048;
const maxSearchDomain = 253;

const formingReason = 'DNSConfigForming';
const missingReason = 'MissingClusterDNS';

/** `/etc/resolv.conf` of a Pod (pkg/kubelet/network/dns/dns.go, `GetPodDNS`). */
export function resolvConf(pod: Pick<Pod, 'metadata' | 'spec'>, cluster: ResolvConfOptions): PodResolvConf {
  const { dnsPolicy = 'ClusterFirst', hostNetwork = false, dnsConfig } = pod.spec;
  const warnings: { reason: string; message: string }[] = [];
  let config = cluster.node;
  const isClusterFirst =
    dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && !hostNetwork);
  if (dnsPolicy === 'None') {
    config = { nameservers: [], searches: [], options: [] };
  } else if (isClusterFirst && cluster.servers.length > 0) {
    config = {
      nameservers: cluster.servers,
      searches: [
        ...new Set([
          ...clusterSearches(pod.metadata.namespace ?? '', cluster.domain),
          ...cluster.node.searches,
        ]),
      ],
      options: ['ndots:5'],
    };
  } else if (isClusterFirst) {
    warnings.push({
      reason: missingReason,
      message: `kubelet does not have ClusterDNS IP configured and cannot create Pod using "${dnsPolicy}" policy. Falling back to "Default" policy.`,
    });
  }
  if (dnsConfig !== undefined) config = merged(config, dnsConfig);
  const { conf, messages } = fitted(config);
  for (const message of messages) warnings.push({ reason: formingReason, message });
  return { text: textOf(conf), warnings };
}

/** Reads a resolv.conf as the kubelet does (`parseResolvConf`): the last `search` and `options` count. */
export function parseResolvConf(text: string): ResolvConf {
  const nameservers: string[] = [];
  let searches: readonly string[] = [];
  let options: readonly string[] = [];
  for (const line of text.split('\n')) {
    const [keyword = '', ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver' && values[0] !== undefined) nameservers.push(values[0]);
    else if (keyword === 'search') searches = values.map((domain) => domain.replace(/(?<=.)\.$/, ''));
    else if (keyword === 'options') options = values;
  }
  return { nameservers, searches, options };
}

/** The search list of Pods of a namespace; none without a domain. */
function clusterSearches(namespace: string, domain: string): readonly string[] {
  return domain === '' ? [] : [`${namespace}.svc.${domain}`, `svc.${domain}`, domain];
}

/** `appendDNSConfig`: the Pod's servers and searches come last, its options win. */
function merged(config: ResolvConf, own: PodDNSConfig): ResolvConf {
  const options = new Map(config.options.map((option) => [option.split(':', 1)[0] ?? option, option]));
  for (const { name = '', value = '' } of own.options ?? []) {
    options.set(name, value === '' ? name : `${name}:${value}`);
  }
  return {
    nameservers: [...new Set([...config.nameservers, ...(own.nameservers ?? [])])],
    searches: [...new Set([...config.searches, ...(own.searches ?? [])])],
    options: [...options.values()],
  };
}

/** `formDNSConfigFitsLimits`: what libc would not read is left out. */
function fitted(config: ResolvConf): { readonly conf: ResolvConf; readonly messages: readonly string[] } {
  const messages: string[] = [];
  const nameservers = config.nameservers.slice(0, maxNameservers);
  if (nameservers.length < config.nameservers.length) {
    messages.push(
      `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${nameservers.join(' ')}`,
    );
  }
  const searches = config.searches.slice(0, maxSearches).filter((domain) => domain.length <= maxSearchDomain);
  while (searches.join(' ').length > maxSearchLine) searches.pop();
  if (searches.length < config.searches.length) {
    messages.push(
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(' ')}`,
    );
  }
  return { conf: { nameservers, searches, options: config.options }, messages };
}

/** As container runtimes write it. */
function textOf({ nameservers, searches, options }: ResolvConf): string {
  return [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...nameservers.map((server) => `nameserver ${server}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
    '',
  ].join('\n');
}
