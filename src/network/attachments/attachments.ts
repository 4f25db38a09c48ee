/** The attachments of a Pod: its selections with the networks that they name (multus `pkg/k8sclient`, `cmdAdd`). */
import { parseAddress } from '../../objects/address.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/attachments.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { AttachmentError } from './errors.ts';
import { type AttachmentAddress, type AttachmentRoute, readAddress } from './ipam.ts';
import { macOf } from './mac.ts';
import { type NetworkConfig, readNetworkConfig } from './network-config.ts';
import { networkStatusOf } from './network-status.ts';
import { type NetworkSelection, networksAnnotation, parseNetworkSelections } from './selection.ts';

/** The Pod's interface in the cluster's own network. */
export const clusterInterface = 'eth0';

/** One further interface of a Pod. */
export interface Attachment {
  readonly selection: NetworkSelection;
  /** `namespace/name` of the NetworkAttachmentDefinition. */
  readonly network: string;
  readonly config: NetworkConfig;
  /** The name in the selection, else `net1` and so on by the place in the annotation. */
  readonly interface: string;
  readonly mac: string;
}

/** Which networks a Pod may name. */
export interface AttachmentRules {
  /** Only those of its own namespace and of {@link nonIsolatedNamespaces} (multus' `namespaceIsolation`); default: all. */
  readonly namespaceIsolation?: boolean;
  /** Default: `default` alone (multus' `globalNamespaces`). */
  readonly nonIsolatedNamespaces?: readonly string[];
}

/** True for a Pod that asks for further networks. One in its node's namespace gets none. */
export function asksForNetworks({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): boolean {
  return (metadata.annotations?.[networksAnnotation] ?? '') !== '' && spec.hostNetwork !== true;
}

/**
 * The attachments of a Pod, in the order of its annotation; none without one.
 *
 * @param find a NetworkAttachmentDefinition by its namespace and name.
 * @throws {AttachmentError} for the first that cannot be attached.
 */
export function resolveAttachments(
  pod: Pod,
  find: (namespace: string, name: string) => NetworkAttachmentDefinition | undefined,
  rules: AttachmentRules = {},
): readonly Attachment[] {
  if (!asksForNetworks(pod)) return [];
  const { namespace = '', uid = '', annotations } = pod.metadata;
  const selections = parseNetworkSelections(annotations?.[networksAnnotation] ?? '', namespace);
  const names = new Set([clusterInterface]);
  return selections.map((selection, index) => {
    checkIsolation(selection, namespace, rules);
    const definition = find(selection.namespace, selection.name);
    if (definition === undefined) throw noNetwork(selection);
    const name = selection.interface ?? `net${index + 1}`;
    // The kernel refuses a second interface of that name.
    if (names.has(name)) throw new AttachmentError(`failed to rename interface to "${name}": file exists`);
    names.add(name);
    return {
      selection,
      network: `${selection.namespace}/${selection.name}`,
      config: readNetworkConfig(definition),
      interface: name,
      mac: selection.mac ?? macOf(uid, name),
    };
  });
}

function checkIsolation(selection: NetworkSelection, ofPod: string, rules: AttachmentRules): void {
  const { namespaceIsolation = false, nonIsolatedNamespaces = ['default'] } = rules;
  const { namespace } = selection;
  if (!namespaceIsolation || namespace === ofPod || nonIsolatedNamespaces.includes(namespace)) return;
  throw new AttachmentError(
    `GetNetworkDelegates: namespace isolation enabled, annotation violates permission, pod is in namespace ${ofPod} but refers to target namespace ${namespace}`,
  );
}

function noNetwork({ namespace, name }: NetworkSelection): AttachmentError {
  const why = `network-attachment-definitions.k8s.cni.cncf.io "${name}" not found`;
  return new AttachmentError(
    `cannot find a network-attachment-definition (${name}) in namespace (${namespace}): ${why}`,
    'NoNetworkFound',
  );
}

/** An interface of a Pod, with the addresses that it was given. */
export interface AttachedInterface {
  readonly attachment: Attachment;
  readonly addresses: readonly AttachmentAddress[];
}

/**
 * The further interfaces of a Pod by its `network-status`, with the prefix lengths of the networks.
 *
 * @returns undefined for a Pod without that annotation.
 * @throws {AttachmentError} where a network has changed so that it cannot be attached.
 */
export function attachedInterfaces(
  pod: Pod,
  find: (namespace: string, name: string) => NetworkAttachmentDefinition | undefined,
  rules: AttachmentRules = {},
): readonly AttachedInterface[] | undefined {
  const statuses = networkStatusOf(pod);
  if (statuses === undefined) return undefined;
  const byName = new Map(
    statuses.filter((each) => each.default !== true).map((each) => [each.interface, each]),
  );
  return resolveAttachments(pod, find, rules).flatMap((attachment) => {
    const status = byName.get(attachment.interface);
    if (status === undefined) return [];
    const addresses = (status.ips ?? []).flatMap((ip) => addressOf(attachment, ip) ?? []);
    const mac = status.mac ?? attachment.mac;
    return [{ attachment: { ...attachment, mac }, addresses }];
  });
}

/** The routes of an attachment: its network's, and the default routes that the Pod asks for. */
function routesOf({ selection, config }: Attachment): readonly AttachmentRoute[] {
  const { ipam } = config.plugin;
  const own = ipam.type === 'none' || ipam.type === 'other' ? [] : ipam.routes;
  const asked = selection.defaultRoute.flatMap((gateway) => {
    const family = parseAddress(gateway)?.family;
    if (family === undefined) return [];
    return [{ destination: family === 'IPv4' ? '0.0.0.0/0' : '::/0', gateway }];
  });
  return [...own, ...asked];
}

/** Gateways of default routes, for `network-status`. */
export function gatewaysOf(attachment: Attachment): readonly string[] {
  return routesOf(attachment).flatMap(({ destination, gateway }) =>
    gateway !== undefined && (destination === '0.0.0.0/0' || destination === '::/0') ? [gateway] : [],
  );
}

/** The addresses that the plugin `static` gives: those that the Pod asks for, else those of the network. @throws {AttachmentError} */
export function staticAddresses({ selection, config }: Attachment): readonly AttachmentAddress[] {
  const { ipam } = config.plugin;
  if (ipam.type !== 'static') return [];
  if (selection.ips.length === 0) return ipam.addresses;
  return selection.ips.map((ip) => readAddress(ip, `static: ip '${ip}' does not have a prefix length`));
}

function addressOf(attachment: Attachment, ip: string): AttachmentAddress | undefined {
  const parsed = parseAddress(ip);
  if (parsed === undefined) return undefined;
  const { family, value, canonical: address } = parsed;
  const { ipam } = attachment.config.plugin;
  if (ipam.type === 'static') return staticAddresses(attachment).find((each) => each.address === address);
  if (ipam.type === 'whereabouts') {
    const range = ipam.ranges.find(({ network }) => network.contains(family, value));
    return range === undefined ? undefined : { family, address, prefixLength: range.prefixLength };
  }
  if (ipam.type === 'host-local') {
    const range = ipam.sets.flat().find(({ usable }) => usable.contains(family, value));
    return range === undefined ? undefined : { family, address, prefixLength: range.prefixLength };
  }
  return undefined;
}
