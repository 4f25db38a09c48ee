import { parseCidr, parseStrictAddress, parseAddress } from '../../objects/address.ts';
import { isRecord, isStringList } from '../../objects/json.ts';
import {
  AttachmentError,
  parseMac,
  type AttachmentAddress,
  type AttachmentRoute,
  readAddress,
  macOf,
} from './ipam.ts';
import { errorMessage } from '../../objects/status.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { type NetworkConfig, readNetworkConfig } from './network-config.ts';
import { networkStatusOf } from './network-status.ts';

/**
 * The networks that a Pod requests: the annotation, in both forms (multus `pkg/k8sclient`, the specification's
 * 4.1).
 */

/** The annotation of a Pod with its requested networks. */
export const networksAnnotation = 'k8s.v1.cni.cncf.io/networks';

/** Replaces the cluster's own network for a Pod, in multus. */
export const defaultNetworkAnnotation = 'v1.multus-cni.io/default-network';

/** One requested network. */
export interface NetworkSelection {
  readonly namespace: string;
  readonly name: string;
  /** The name of the interface; absent: `net` and its number. */
  readonly interface?: string;
  /** Addresses, or addresses with a prefix length, for plugins that take requests. */
  readonly ips: readonly string[];
  /** Canonical. */
  readonly mac?: string;
  /** Gateways: the Pod's default routes go this way. */
  readonly defaultRoute: readonly string[];
  /** Members that need a device, a port map or shaping: not acted upon. */
  readonly unsupported: readonly string[];
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
/** IFNAMSIZ - 1. */
const maxInterfaceLength = 15;
const notSupported = ['infiniband-guid', 'portMappings', 'bandwidth', 'ipam-claim-reference'];

/** Reads the annotation. @param namespace of the Pod: the default of networks. @throws {AttachmentError} */
export function parseNetworkSelections(text: string, namespace: string): readonly NetworkSelection[] {
  if (/[[{"]/.test(text)) return parseJson(text, namespace);
  return text.split(',').map((item) => parseItem(item.trim(), namespace));
}

/** `[namespace/]name[@interface]` */
function parseItem(text: string, ofPod: string): NetworkSelection {
  const slashed = text.split('/');
  const [last = ''] = slashed.slice(-1);
  if (slashed.length > 2) throw failure(`Invalid network object (failed at '/')`);
  const [name = '', requested, ...more] = last.split('@').map((part) => part.trim());
  if (more.length > 0) throw failure(`Invalid network object (failed at '@')`);
  const namespace = slashed.length === 2 ? (slashed[0] ?? '').trim() : '';
  for (const part of [namespace, name]) {
    if (part !== '' && !label.test(part)) throw mismatch(part);
  }
  if (name === '') throw mismatch(text);
  return {
    ...{ name, namespace: namespace === '' ? ofPod : namespace, ips: [], defaultRoute: [], unsupported: [] },
    ...(requested === undefined || requested === '' ? {} : { interface: checkInterface(requested) }),
  };
}

function parseJson(text: string, ofPod: string): readonly NetworkSelection[] {
  const what = 'failed to parse pod Network Attachment Selection Annotation JSON format';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw failure(`${what}: ${errorMessage(error)}`);
  }
  if (!Array.isArray(value)) throw failure(`${what}: it is no list`);
  return value.map((item: unknown) => {
    if (!isRecord(item)) throw failure(`${what}: an element is no object`);
    return parseElement(item, ofPod, what);
  });
}

function parseElement(element: Record<string, unknown>, ofPod: string, what: string): NetworkSelection {
  const read = (member: string): string => {
    const found = element[member] ?? '';
    if (typeof found !== 'string') throw failure(`${what}: ${member} is no string`);
    return found;
  };
  const readList = (member: string): readonly string[] => {
    const found = element[member] ?? [];
    if (!isStringList(found)) throw failure(`${what}: ${member} is no list of strings`);
    return found;
  };
  const name = read('name');
  const namespace = read('namespace');
  if (name === '') throw failure(`${what}: an element has no name`);
  for (const part of [namespace, name]) {
    if (part !== '' && !label.test(part)) throw mismatch(part);
  }
  const requested = read('interface');
  const mac = read('mac');
  const ips = readList('ips');
  for (const ip of ips) {
    if (ip.includes('/') && parseCidr(ip) === undefined) {
      throw failure(`failed to parse CIDR "${ip}": invalid CIDR address: ${ip}`);
    }
    if (!ip.includes('/') && parseStrictAddress(ip) === undefined) {
      throw failure(`failed to parse IP address "${ip}"`);
    }
  }
  const canonical = mac === '' ? undefined : parseMac(mac);
  if (mac !== '' && canonical === undefined)
    throw failure(`failed to mac: address ${mac}: invalid MAC address`);
  // Go reads "" as no address.
  const defaultRoute = readList('default-route').filter((gateway) => gateway !== '');
  for (const gateway of defaultRoute) {
    if (parseStrictAddress(gateway) === undefined) throw failure(`${what}: invalid IP address: ${gateway}`);
  }
  return {
    ...{ name, namespace: namespace === '' ? ofPod : namespace, ips, defaultRoute },
    ...(requested === '' ? {} : { interface: checkInterface(requested) }),
    ...(canonical === undefined ? {} : { mac: canonical }),
    unsupported: notSupported.filter((member) => (element[member] ?? null) !== null),
  };
}

/** Both forms: the kernel refuses others (`utils.ValidateInterfaceName` of CNI). */
function checkInterface(name: string): string {
  if (name.length > maxInterfaceLength || /[\s/:]/.test(name) || name === '.' || name === '..') {
    const why = `must be less than 15 chars and not contain '/' or spaces. interface name '${name}'`;
    throw failure(`Failed to parse interface name: ${why}`);
  }
  return name;
}

function mismatch(text: string): AttachmentError {
  const rule =
    'must consist of lower case alphanumeric characters). Must start and end with an alphanumeric character)';
  const why = `one or more items did not match comma-delimited format (${rule}, mismatch @ '${text}'`;
  return failure(`Failed to parse: ${why}`);
}

function failure(message: string): AttachmentError {
  return new AttachmentError(`parsePodNetworkAnnotation: ${message}`);
}

/** The attachments of a Pod: its selections with the networks that they name (multus `pkg/k8sclient`, `cmdAdd`). */

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
): readonly AttachedInterface[] | undefined {
  const statuses = networkStatusOf(pod);
  if (statuses === undefined) return undefined;
  const byName = new Map(
    statuses.filter((each) => each.default !== true).map((each) => [each.interface, each]),
  );
  return resolveAttachments(pod, find).flatMap((attachment) => {
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
