import { serviceNameLabel, isReady } from '../../objects/endpoints.ts';
import { type IPFamily, type ParsedAddress, parseAddress } from '../../objects/address.ts';
import type { Pod, Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { joinKey, type ObjectKey } from '../../objects/meta.ts';

/** The same words as of the plugin kubernetes of CoreDNS. */
export const podModes = ['disabled', 'insecure', 'verified'] as const;

export interface ZoneOptions {
  /** `cluster.local`: lower case, no dot at the end. */
  readonly domain: string;
  /** Seconds, 0 to 3600, of every record but dns-version. */
  readonly ttl: number;
  /**
   * Names of Pods (`10-0-0-1.shop.pod.cluster.local`): none; for any address; for addresses of Pods of the namespace.
   */
  readonly pods: (typeof podModes)[number];
  /** The Service of this DNS: its name is in the NS record. */
  readonly service: ObjectKey;
}

export interface ZoneAddress {
  readonly family: IPFamily;
  /** Canonical. */
  readonly text: string;
}

export interface ZonePort {
  /** "" for a port without a name. */
  readonly name: string;
  /** `tcp`, `udp`, `sctp`. */
  readonly protocol: string;
  /** Undefined: endpoints without ports, which have addresses and no SRV records. */
  readonly port: number | undefined;
}

/** A Service in the zone, with the records of its names. */
export type ZoneService =
  | {
      readonly kind: 'clusterIP';
      readonly addresses: readonly ZoneAddress[];
      readonly ports: readonly ZonePort[];
    }
  | { readonly kind: 'headless' }
  /** `target`: without a dot at the end, in lower case. */
  | { readonly kind: 'externalName'; readonly target: string };

/** One address of a ready endpoint. */
export interface ZoneEndpoint {
  /** `spec.hostname` of the Pod, or the address with dashes. */
  readonly label: string;
  readonly address: ZoneAddress;
}

/** The ready endpoints of one EndpointSlice. */
export interface ZoneSlice {
  readonly service: ObjectKey;
  readonly endpoints: readonly ZoneEndpoint[];
  readonly ports: readonly ZonePort[];
}

/** The objects of a cluster as its DNS sees them, changed object by object; `answer.ts` reads it. */
export class Zone {
  readonly options: ZoneOptions;
  /** Unix seconds of the last change: the serial of the SOA record. Set by the caller that applies the changes. */
  serial = 0;
  #version = 0;
  readonly #namespaces = new Set<string>();
  readonly #services = new Map<ObjectKey, ZoneService>();
  readonly #slices = new Map<ObjectKey, ZoneSlice>();
  readonly #slicesOfService = new SetMap<ObjectKey>();
  readonly #servicesAt = new SetMap<ObjectKey>();
  readonly #slicesAt = new SetMap<ObjectKey>();
  readonly #pods = new Map<ObjectKey, readonly string[]>();
  /** By namespace and address. */
  readonly #podsAt = new SetMap<ObjectKey>();

  constructor(options: ZoneOptions) {
    this.options = options;
  }

  /** Another one after each change. */
  get version(): number {
    return this.#version;
  }

  setNamespace(name: string, exists: boolean): void {
    this.#version++;
    if (exists) this.#namespaces.add(name);
    else this.#namespaces.delete(name);
  }

  /** @param service undefined: it is gone. */
  setService(key: ObjectKey, service: Service | undefined): void {
    this.#version++;
    for (const { text } of addressesOf(this.#services.get(key))) this.#servicesAt.remove(text, key);
    const now = service === undefined ? undefined : zoneService(service);
    if (now === undefined) this.#services.delete(key);
    else this.#services.set(key, now);
    for (const { text } of addressesOf(now)) this.#servicesAt.add(text, key);
  }

  /** @param slice undefined: it is gone. */
  setSlice(key: ObjectKey, slice: EndpointSlice | undefined): void {
    this.#version++;
    const before = this.#slices.get(key);
    if (before !== undefined) {
      this.#slices.delete(key);
      this.#slicesOfService.remove(before.service, key);
      for (const { address } of before.endpoints) this.#slicesAt.remove(address.text, key);
    }
    const now = slice === undefined ? undefined : zoneSlice(slice);
    if (now === undefined) return;
    this.#slices.set(key, now);
    this.#slicesOfService.add(now.service, key);
    for (const { address } of now.endpoints) this.#slicesAt.add(address.text, key);
  }

  /**
   * Needed for {@link ZoneOptions.pods} `verified` alone.
   *
   * @param pod undefined: it is gone.
   */
  setPod(key: ObjectKey, pod: Pod | undefined): void {
    this.#version++;
    for (const place of this.#pods.get(key) ?? []) this.#podsAt.remove(place, key);
    this.#pods.delete(key);
    if (pod === undefined) return;
    const { namespace = '' } = pod.metadata;
    const places = (pod.status.podIPs ?? []).flatMap(({ ip = '' }) => {
      const address = parseAddress(ip);
      return address === undefined ? [] : [joinKey(namespace, address.canonical)];
    });
    this.#pods.set(key, places);
    for (const place of places) this.#podsAt.add(place, key);
  }

  hasNamespace(name: string): boolean {
    return this.#namespaces.has(name);
  }

  hasPodAt(namespace: string, address: string): boolean {
    return this.#podsAt.has(joinKey(namespace, address));
  }

  service(key: ObjectKey): ZoneService | undefined {
    return this.#services.get(key);
  }

  slices(service: ObjectKey): ZoneSlice[] {
    return this.#found(this.#slicesOfService.at(service));
  }

  /** The Services that have this cluster IP. */
  servicesAt(address: string): readonly ObjectKey[] {
    return this.#servicesAt.at(address);
  }

  /** The slices with an endpoint at this address. */
  slicesAt(address: string): ZoneSlice[] {
    return this.#found(this.#slicesAt.at(address));
  }

  #found(keys: readonly ObjectKey[]): ZoneSlice[] {
    return keys.flatMap((key) => this.#slices.get(key) ?? []);
  }
}

/** Keys by a text under which they are found. */
class SetMap<K> {
  readonly #keys = new Map<string, Set<K>>();

  add(place: string, key: K): void {
    const keys = this.#keys.get(place);
    if (keys === undefined) this.#keys.set(place, new Set([key]));
    else keys.add(key);
  }

  remove(place: string, key: K): void {
    const keys = this.#keys.get(place);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(place);
  }

  has(place: string): boolean {
    return this.#keys.has(place);
  }

  at(place: string): readonly K[] {
    return [...(this.#keys.get(place) ?? [])];
  }
}

function addressesOf(service: ZoneService | undefined): readonly ZoneAddress[] {
  return service?.kind === 'clusterIP' ? service.addresses : [];
}

function zoneService({ spec }: Service): ZoneService | undefined {
  if (spec.type === 'ExternalName') {
    const target = (spec.externalName ?? '').toLowerCase().replace(/\.$/, '');
    // An address is no name to point to; CoreDNS leaves such a Service out. kube-apiserver allows labels of any length.
    const isName = parseAddress(target) === undefined && /^[^.]{1,63}(\.[^.]{1,63})*$/.test(target);
    return isName ? { kind: 'externalName', target } : undefined;
  }
  const { clusterIPs = spec.clusterIP === undefined ? [] : [spec.clusterIP] } = spec;
  if (clusterIPs[0] === 'None') return { kind: 'headless' };
  const addresses = clusterIPs.flatMap((text) => zoneAddress(parseAddress(text)));
  const ports = (spec.ports ?? []).map((port) => zonePort(port));
  // A Service that no cluster IP has been given to yet has no name yet.
  return addresses.length === 0 ? undefined : { kind: 'clusterIP', addresses, ports };
}

function zoneSlice(slice: EndpointSlice): ZoneSlice | undefined {
  const name = slice.metadata.labels?.[serviceNameLabel];
  if (name === undefined || name === '' || slice.addressType === 'FQDN') return undefined;
  const endpoints = (slice.endpoints ?? [])
    .filter(isReady)
    .flatMap(({ addresses, hostname }) =>
      addresses
        .flatMap((text) => zoneAddress(parseAddress(text)))
        .map((address) => ({ label: endpointLabel(hostname, address.text), address })),
    );
  const ports = (slice.ports ?? []).map((port) => zonePort(port));
  const { namespace = '' } = slice.metadata;
  return {
    service: joinKey(namespace, name),
    endpoints,
    ports: ports.length === 0 ? [{ name: '', protocol: '', port: undefined }] : ports,
  };
}

function zoneAddress(address: ParsedAddress | undefined): readonly ZoneAddress[] {
  return address === undefined ? [] : [{ family: address.family, text: address.canonical }];
}

function zonePort(port: { name?: string; protocol?: string; port?: number }): ZonePort {
  return { name: port.name ?? '', protocol: (port.protocol ?? 'TCP').toLowerCase(), port: port.port };
}

/** The first label of an endpoint's name: its hostname, else its address with dashes (CoreDNS `endpointHostname`). */
function endpointLabel(hostname: string | undefined, address: string): string {
  if (hostname !== undefined && hostname !== '') return hostname.toLowerCase();
  const dashed = address.replaceAll(/[.:]/g, '-');
  // No label of a host name ends with a dash (RFC 952).
  return dashed.endsWith('-') ? `${dashed}0` : dashed;
}
