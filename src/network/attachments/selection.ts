/**
 * The networks that a Pod requests: the annotation, in both forms (multus `pkg/k8sclient`, the specification's
 * 4.1).
 */
import { parseCidr, parseStrictAddress } from '../../objects/address.ts';
import { isRecord, isStringList } from '../../objects/json.ts';
import { AttachmentError } from './errors.ts';
import { parseMac } from './mac.ts';
import { errorMessage } from '../../objects/error-message.ts';

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
