/**
 * The order in which kube-controller-manager writes ports and subsets: by the FNV-1a hash, 128 bits, of the text that
 * Go's spew prints of each (pkg/api/v1/endpoints `util.go`, k8s.io/endpointslice/util `controller_utils.go`,
 * k8s.io/utils/dump `ForHash`; MD5 before Kubernetes 1.35). With the same order two controllers write the same object,
 * and cut the same addresses from one that is too long. Pure.
 */
import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  ObjectReference,
} from '../../objects/types/core.generated.ts';
import type { EndpointPort as SlicePort } from '../../objects/types/discovery.generated.ts';

/** The ports of an EndpointSlice in Kubernetes' order. */
export function slicePortsInOrder(ports: readonly SlicePort[]): SlicePort[] {
  return inHashOrder(ports, (port) => `(v1.EndpointPort)${dumpSlicePort(port)}`);
}

/** The ports of a subset of Endpoints in Kubernetes' order. */
export function endpointPortsInOrder(ports: readonly EndpointPort[]): EndpointPort[] {
  return inHashOrder(ports, (port) => `(v1.EndpointPort)${dumpPort(port)}`);
}

/**
 * The subsets of Endpoints in Kubernetes' order. Their ports and addresses must be in order already, as they are part
 * of the hash.
 */
export function subsetsInOrder(subsets: readonly EndpointSubset[]): EndpointSubset[] {
  return inHashOrder(subsets, (subset) => `(v1.EndpointSubset)${dumpSubset(subset)}`);
}

function inHashOrder<T>(items: readonly T[], dump: (item: T) => string): T[] {
  if (items.length < 2) return [...items];
  // Each text is hashed once, also when a broken server sends a port 100,000 times.
  const hashes = new Map<string, string>();
  return items
    .map((item) => {
      const text = dump(item);
      const hash = hashes.get(text) ?? fnv128a(text);
      hashes.set(text, hash);
      return { item, hash };
    })
    .sort((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0))
    .map(({ item }) => item);
}

function dumpSlicePort({ name, protocol, port, appProtocol }: SlicePort): string {
  return `{Name:${pointer('string', name)} Protocol:${pointer('v1.Protocol', protocol)} Port:${pointer('int32', port)} AppProtocol:${pointer('string', appProtocol)}}`;
}

function dumpPort({ name = '', port, protocol = '', appProtocol }: EndpointPort): string {
  return `{Name:(string)${name} Port:(int32)${port} Protocol:(v1.Protocol)${protocol} AppProtocol:${pointer('string', appProtocol)}}`;
}

function dumpSubset({ addresses, notReadyAddresses, ports }: EndpointSubset): string {
  return `{Addresses:${list('v1.EndpointAddress', addresses, dumpAddress)} NotReadyAddresses:${list('v1.EndpointAddress', notReadyAddresses, dumpAddress)} Ports:${list('v1.EndpointPort', ports, dumpPort)}}`;
}

function dumpAddress({ ip, hostname = '', nodeName, targetRef }: EndpointAddress): string {
  const target = targetRef && dumpReference(targetRef);
  return `{IP:(string)${ip} Hostname:(string)${hostname} NodeName:${pointer('string', nodeName)} TargetRef:${pointer('v1.ObjectReference', target)}}`;
}

function dumpReference(reference: ObjectReference): string {
  const { kind = '', namespace = '', name = '', uid = '' } = reference;
  const { apiVersion = '', resourceVersion = '', fieldPath = '' } = reference;
  return `{Kind:(string)${kind} Namespace:(string)${namespace} Name:(string)${name} UID:(types.UID)${uid} APIVersion:(string)${apiVersion} ResourceVersion:(string)${resourceVersion} FieldPath:(string)${fieldPath}}`;
}

function pointer(type: string, value: string | number | undefined): string {
  return `(*${type})${value ?? '<nil>'}`;
}

function list<T>(type: string, items: readonly T[] | undefined, dump: (item: T) => string): string {
  return `([]${type})${items === undefined ? '<nil>' : `[${items.map(dump).join(' ')}]`}`;
}

const offsetBasis = [0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e] as const;

/** The prime of 128 bits is 2^88 + this. */
const primeLow = 0x13b;

const utf8 = new TextEncoder();

/**
 * The FNV-1a hash of a text's UTF-8 bytes, 128 bits as 32 hexadecimal digits (Go's `hash/fnv`, `New128a`). The hash is
 * kept in four words of 32 bits, lowest first, so that all intermediate results stay within 53 bits.
 */
export function fnv128a(text: string): string {
  let a: number = offsetBasis[0];
  let b: number = offsetBasis[1];
  let c: number = offsetBasis[2];
  let d: number = offsetBasis[3];
  for (const byte of utf8.encode(text)) {
    a = (a ^ byte) >>> 0;
    const low = a * primeLow;
    const second = b * primeLow + Math.floor(low / 0x1_0000_0000);
    // Shifting by 88 bits moves the lowest 40 into the upper two words.
    const third = c * primeLow + Math.floor(second / 0x1_0000_0000) + ((a << 24) >>> 0);
    const fourth = d * primeLow + Math.floor(third / 0x1_0000_0000) + (((a >>> 8) | ((b << 24) >>> 0)) >>> 0);
    a = low >>> 0;
    b = second >>> 0;
    c = third >>> 0;
    d = fourth >>> 0;
  }
  return [d, c, b, a].map((word) => word.toString(16).padStart(8, '0')).join('');
}
