/** The `network-status` of a Pod, and its Events about networks that it does not get. */
import { type Attachment, clusterInterface, gatewaysOf } from '../../network/attachments/attachments.ts';
import type { NetworkDNS, NetworkStatus } from '../../network/attachments/network-status.ts';
import { defaultNetworkAnnotation } from '../../network/attachments/selection.ts';
import { textAt, textsAt } from '../../objects/read.ts';
import type { Pod } from '../../objects/types/core.generated.ts';

/** The name of the cluster's own network in `network-status`. */
const clusterNetwork = 'servicenet';

/** An attachment with the addresses that it has got, canonical. */
export interface Addressed {
  readonly attachment: Attachment;
  readonly ips: readonly string[];
}

/** The cluster's own network first, then the attachments in the order of the annotation. */
export function planNetworkStatus(pod: Pod, attached: readonly Addressed[]): readonly NetworkStatus[] {
  const podIPs = (pod.status.podIPs ?? []).map(({ ip }) => ip);
  return [
    { name: clusterNetwork, interface: clusterInterface, ips: podIPs, default: true, dns: {} },
    ...attached.map(({ attachment, ips }): NetworkStatus => {
      const { network, config, mac } = attachment;
      const { mtu, dns } = config.plugin;
      return {
        ...{ name: network, interface: attachment.interface, ips, mac },
        ...(mtu === undefined ? {} : { mtu }),
        ...{ dns: dnsOf(dns), gateway: gatewaysOf(attachment) },
      };
    }),
  ];
}

function dnsOf(written: unknown): NetworkDNS {
  const list = (member: 'nameservers' | 'search' | 'options'): NetworkDNS => {
    const found = textsAt(written, member);
    return found.length === 0 ? {} : { [member]: found };
  };
  const domain = textAt(written, 'domain');
  return {
    ...list('nameservers'),
    ...(domain === '' ? {} : { domain }),
    ...list('search'),
    ...list('options'),
  };
}

/** The requests of a Pod that are not fulfilled, one message each. */
export function planOmissions(pod: Pod, attachments: readonly Attachment[]): readonly string[] {
  const messages = attachments.flatMap(({ network, selection, config, interface: name }) => {
    const { ipam } = config.plugin;
    const unsupported = selection.unsupported.map(
      (member) => `${network} (${name}): ${member} of the annotation is not acted upon`,
    );
    if (ipam.type !== 'other') return unsupported;
    return [
      ...unsupported,
      `${network} (${name}): the interface gets no addresses, as those of the IPAM plugin "${ipam.plugin}" are not given here: use whereabouts, host-local or static`,
    ];
  });
  if (pod.metadata.annotations?.[defaultNetworkAnnotation] === undefined) return messages;
  return [
    ...messages,
    `${defaultNetworkAnnotation} is not acted upon: ${clusterInterface} is in the cluster's network`,
  ];
}

/**
 * The kubelet's message when the network of a sandbox cannot be set up (containerd's `RunPodSandbox`, multus'
 * `cmdAdd`).
 *
 * @param sandbox the sandbox's id.
 */
export function sandboxMessage(pod: Pod, sandbox: string, why: string): string {
  const { namespace = '', name = '', uid = '' } = pod.metadata;
  const plugin = `plugin type="multus" name="multus-cni-network" failed (add)`;
  return `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${sandbox}": ${plugin}: Multus: [${namespace}/${name}/${uid}]: ${why}`;
}
