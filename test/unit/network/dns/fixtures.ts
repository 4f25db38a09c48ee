import { answer } from '../../../../src/network/dns/answer.ts';
import type { DnsRecord } from '../../../../src/network/dns/records.ts';
import { Zone, type ZoneOptions } from '../../../../src/network/dns/zone.ts';
import type { Pod, Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type {
  Endpoint,
  EndpointPort,
  EndpointSlice,
} from '../../../../src/objects/types/discovery.generated.ts';
import { keyOf } from '../../../../src/objects/meta.ts';

export function service(namespace: string, name: string, spec: ServiceSpec): Service {
  return { metadata: { namespace, name }, spec, status: {} };
}

/** A slice `name-N` of the Service `name`. */
export function slice(
  namespace: string,
  name: string,
  endpoints: Endpoint[],
  ports: EndpointPort[] = [{ name: 'http', protocol: 'TCP', port: 8080 }],
  { addressType = 'IPv4', number = 0 } = {},
): EndpointSlice {
  const labels = { 'kubernetes.io/service-name': name };
  return { metadata: { namespace, name: `${name}-${number}`, labels }, addressType, endpoints, ports };
}

export interface Objects {
  readonly namespaces?: readonly string[];
  readonly services?: readonly Service[];
  readonly slices?: readonly EndpointSlice[];
  readonly pods?: readonly Pod[];
}

export function zoneOf(objects: Objects, options: Partial<ZoneOptions> = {}): Zone {
  const zone = new Zone({
    domain: 'cluster.local',
    ttl: 5,
    pods: 'disabled',
    service: 'kube-system/kube-dns',
    ...options,
  });
  zone.serial = 1_700_000_000;
  for (const namespace of objects.namespaces ?? []) zone.setNamespace(namespace, true);
  for (const each of objects.services ?? []) zone.setService(keyOf(each), each);
  for (const each of objects.slices ?? []) zone.setSlice(keyOf(each), each);
  for (const each of objects.pods ?? []) zone.setPod(keyOf(each), each);
  return zone;
}

/** A record as a zone file has it, without TTL and class. */
export function textOf(record: DnsRecord): string {
  const { name, type } = record;
  switch (type) {
    case 'A':
    case 'AAAA':
      return `${name} ${type} ${record.address}`;
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return `${name} ${type} ${record.target}`;
    case 'SRV':
      return `${name} SRV ${record.priority} ${record.weight} ${record.port} ${record.target}`;
    case 'TXT':
      return `${name} TXT ${record.text}`;
    case 'SOA':
      return `${name} SOA ${record.mname} ${record.rname} ${record.serial} ${record.refresh} ${record.retry} ${record.expire} ${record.minimum}`;
  }
}

/**
 * What is answered, in short: the values of the answers, `NODATA`, `NXDOMAIN`, `REFUSED`, or `forwarded` for what is
 * not of the cluster.
 */
export function ask(zone: Zone, name: string, type: string): readonly string[] | string {
  const found = answer(zone, { name, type });
  if (found === undefined) return 'forwarded';
  if (found.rcode !== 'NOERROR') return found.rcode;
  if (found.answers.length === 0) return 'NODATA';
  return found.answers.map((record) => textOf(record).split(' ').slice(2).join(' '));
}
