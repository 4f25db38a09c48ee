import {
  addressType,
  type AddressRecord,
  type DnsRecord,
  type SrvRecord,
  type Answer,
  type Question,
  type SoaRecord,
} from './records.ts';
import type { ZoneAddress, Zone, ZonePort } from './zone.ts';
import { parseStrictAddress, formatAddress } from '../../objects/address.ts';
import { joinKey, type ObjectKey, splitKey } from '../../objects/meta.ts';

/** An address and a port that a name leads to. */
export interface Entry {
  /** The name that has this address alone: of the Service, or of one endpoint. */
  readonly target: string;
  readonly address: ZoneAddress;
  /** Undefined: it has no ports. */
  readonly port: number | undefined;
}

/** A or AAAA records: each address of the type once. */
function addressRecords(
  name: string,
  type: 'A' | 'AAAA',
  ttl: number,
  entries: readonly Entry[],
): AddressRecord[] {
  const records: AddressRecord[] = [];
  const seen = new Set<string>();
  for (const { address } of entries) {
    if (addressType(address.family) !== type || seen.has(address.text)) continue;
    seen.add(address.text);
    records.push({ name, type, ttl, address: address.text });
  }
  return records;
}

/**
 * Each port of each target once, and after them the addresses of the targets. The weight is that of CoreDNS
 * (`plugin.SRV`): 100 shared by all entries, before equal ones are left out.
 */
function srvRecords(
  name: string,
  ttl: number,
  entries: readonly Entry[],
): { readonly answers: readonly DnsRecord[]; readonly additionals: readonly DnsRecord[] } {
  const answers = new Map<string, SrvRecord>();
  const additionals = new Map<string, AddressRecord>();
  const weight = Math.max(1, Math.floor(100 / entries.length));
  for (const { target, address, port } of entries) {
    if (port === undefined) continue;
    answers.set(`${target}:${port}`, { name, type: 'SRV', ttl, priority: 0, weight, port, target });
    const type = addressType(address.family);
    additionals.set(`${target} ${address.text}`, { name: target, type, ttl, address: address.text });
  }
  return { answers: [...answers.values()], additionals: [...additionals.values()] };
}

/** The meaning of a name of the zone. */
export type FoundName =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] }
  | { readonly kind: 'alias'; readonly target: string }
  /** It exists, and has no addresses: the apex, `svc`, a namespace. */
  | { readonly kind: 'empty' };

const empty: FoundName = { kind: 'empty' };
/** The name server of a zone without a Service (CoreDNS `defaultNSName`). */
const nameServerLabels = 'ns.dns';

/**
 * The name with these labels below the apex (CoreDNS `parseRequest`, `findServices`, `findPods`).
 *
 * @returns undefined where there is none: NXDOMAIN.
 */
function lookUp(zone: Zone, labels: readonly string[], apex: string): FoundName | undefined {
  const count = labels.length;
  if (count === 0) return empty;
  if (labels.join('.') === nameServerLabels) return nameServerEntries(zone, apex);
  const group = labels[count - 1];
  if (group !== 'svc' && group !== 'pod') return undefined;
  if (count === 1) return empty;
  const namespace = labels[count - 2] ?? '';
  if (!zone.hasNamespace(namespace)) return undefined;
  if (group === 'pod' && zone.options.pods === 'disabled') return undefined;
  if (count === 2) return empty;
  const name = labels[count - 3] ?? '';
  if (group === 'pod') return count === 3 ? podEntries(zone, namespace, name, apex) : undefined;
  if (count === 3) return serviceEntries(zone, joinKey(namespace, name), apex, {});
  const key = joinKey(namespace, name);
  const [first = '', second = ''] = labels;
  if (count === 4) return serviceEntries(zone, key, apex, { endpoint: first });
  if (count > 5) return undefined;
  return serviceEntries(zone, key, apex, {
    port: withoutUnderscore(first),
    protocol: withoutUnderscore(second),
  });
}

/** The labels before the name of a Service. */
interface Part {
  readonly endpoint?: string;
  readonly port?: string;
  readonly protocol?: string;
}

function serviceEntries(zone: Zone, key: ObjectKey, apex: string, part: Part): FoundName | undefined {
  const service = zone.service(key);
  if (service === undefined) return undefined;
  const { endpoint, port, protocol } = part;
  if (service.kind === 'externalName') {
    const isWhole = endpoint === undefined && port === undefined;
    return isWhole ? { kind: 'alias', target: service.target } : undefined;
  }
  const matches = (candidate: ZonePort): boolean =>
    port === undefined || (candidate.name === port && candidate.protocol === protocol);
  const target = serviceName(key, apex);
  const entries: Entry[] = [];
  if (service.kind === 'clusterIP' && endpoint === undefined) {
    for (const servicePort of service.ports) {
      if (!matches(servicePort)) continue;
      for (const address of service.addresses) entries.push({ target, address, port: servicePort.port });
    }
  } else {
    for (const { endpoints, ports } of zone.slices(key)) {
      const wanted = ports.filter(matches);
      for (const { label, address } of endpoints) {
        if (endpoint !== undefined && label !== endpoint) continue;
        for (const each of wanted) {
          entries.push({ target: `${label}.${target}`, address, port: each.port });
        }
      }
    }
  }
  // A headless Service without ready endpoints has no name (specification, 2.4.1).
  return entries.length === 0 ? undefined : { kind: 'entries', entries };
}

function podEntries(zone: Zone, namespace: string, name: string, apex: string): FoundName | undefined {
  const isV4 = /^\d+-\d+-\d+-\d+$/.test(name);
  const address = parseStrictAddress(name.replaceAll('-', isV4 ? '.' : ':'));
  if (address === undefined) return undefined;
  const { family, canonical: text } = address;
  if (zone.options.pods === 'verified' && !zone.hasPodAt(namespace, text)) return undefined;
  const target = `${name}.${namespace}.pod.${apex}`;
  return { kind: 'entries', entries: [{ target, address: { family, text }, port: undefined }] };
}

/** The addresses of the Service of this DNS. */
function nameServerEntries(zone: Zone, apex: string): FoundName {
  return serviceEntries(zone, zone.options.service, apex, {}) ?? empty;
}

/** `web.shop.svc` and the apex. */
function serviceName(key: ObjectKey, apex: string): string {
  const { namespace, name } = splitKey(key);
  return `${name}.${namespace}.svc.${apex}`;
}

function withoutUnderscore(label: string): string {
  return label.startsWith('_') ? label.slice(1) : label;
}

const versionLabel = 'dns-version';
/** Of the DNS specification that is followed (kubernetes/dns, docs/specification.md). */
const specificationVersion = '1.1.0';
/** Seconds; CoreDNS `Services`, TypeTXT. */
const versionTtl = 28_800;
/** Aliases that are followed within the zone (CoreDNS `plugin.A`). */
const maxAliases = 8;

/**
 * Answers a question by the Kubernetes DNS specification 1.1.0, and where that is silent as the plugin kubernetes of
 * CoreDNS does. A name that exists is never NXDOMAIN for a type that it has not: resolvers would take the whole name
 * for missing (RFC 2308).
 *
 * @returns undefined for a name that is not of the cluster: it is for another server.
 */
export function answer(zone: Zone, question: Question): Answer | undefined {
  const name = question.name.toLowerCase();
  const { domain } = zone.options;
  if (name !== domain && !name.endsWith(`.${domain}`)) return reverseAnswer(zone, question, name);
  const { type } = question;
  if (type === 'AXFR' || type === 'IXFR') {
    return { rcode: 'REFUSED', answers: [], authorities: [], additionals: [] };
  }
  // In the case of the question, as in CoreDNS: it is compressed to a pointer then.
  const apex = question.name.slice(question.name.length - domain.length);
  const labels = name === domain ? [] : name.slice(0, -domain.length - 1).split('.');
  if (labels.length === 0 && type === 'SOA') return positive([soaRecord(zone, apex)]);
  if (labels.length === 0 && type === 'NS') return nameServers(zone, apex);
  if (labels.length === 1 && labels[0] === versionLabel) {
    if (type !== 'TXT') return negative(zone, apex, 'NOERROR');
    return positive([{ name: question.name, type, ttl: versionTtl, text: specificationVersion }]);
  }
  const found = lookUp(zone, labels, apex);
  if (found === undefined) return negative(zone, apex, 'NXDOMAIN');
  if (found.kind === 'empty') return negative(zone, apex, 'NOERROR');
  if (found.kind === 'alias') return aliasAnswer(zone, question, found.target, apex);
  if (type === 'A' || type === 'AAAA') {
    const answers = addressRecords(question.name, type, zone.options.ttl, found.entries);
    return answers.length === 0 ? negative(zone, apex, 'NOERROR') : positive(answers);
  }
  if (type === 'SRV') {
    const { answers, additionals } = srvRecords(question.name, zone.options.ttl, found.entries);
    return answers.length === 0 ? negative(zone, apex, 'NOERROR') : positive(answers, additionals);
  }
  return negative(zone, apex, 'NOERROR');
}

function aliasAnswer(zone: Zone, { name, type }: Question, target: string, apex: string): Answer {
  const { ttl, domain } = zone.options;
  const first: DnsRecord = { name, type: 'CNAME', ttl, target };
  if (type === 'CNAME') return positive([first]);
  // CoreDNS has no other types of an ExternalName.
  if (type !== 'A' && type !== 'AAAA') return negative(zone, apex, 'NOERROR');
  const records: DnsRecord[] = [];
  for (let from = name, to = target; records.length < maxAliases;) {
    records.push({ name: from, type: 'CNAME', ttl, target: to });
    if (!to.endsWith(`.${domain}`)) return { ...positive(records), outsideTarget: to };
    const found = lookUp(zone, to.slice(0, -domain.length - 1).split('.'), domain);
    if (found?.kind === 'alias') {
      [from, to] = [to, found.target];
      continue;
    }
    const addresses = found?.kind === 'entries' ? addressRecords(to, type, ttl, found.entries) : [];
    if (addresses.length > 0) return positive([...records, ...addresses]);
    break;
  }
  return negative(zone, apex, 'NOERROR');
}

/** Cluster IPs before endpoints, as CoreDNS `serviceRecordForIP`; every other reverse name is another server's. */
function reverseAnswer(zone: Zone, question: Question, name: string): Answer | undefined {
  const address = addressOfReverseName(name);
  if (address === undefined) return undefined;
  const { domain, ttl } = zone.options;
  const [service] = zone.servicesAt(address);
  const targets =
    service === undefined ? endpointNames(zone, address, domain) : [serviceName(service, domain)];
  if (targets.length === 0) return undefined;
  if (question.type !== 'PTR') {
    return negative(
      zone,
      name.endsWith(reverseDomains[0]) ? reverseDomains[0] : reverseDomains[1],
      'NOERROR',
    );
  }
  return positive(targets.map((target) => ({ name: question.name, type: 'PTR', ttl, target })));
}

function endpointNames(zone: Zone, address: string, domain: string): string[] {
  const names = new Set<string>();
  for (const { service, endpoints } of zone.slicesAt(address)) {
    for (const endpoint of endpoints) {
      if (endpoint.address.text === address) names.add(`${endpoint.label}.${serviceName(service, domain)}`);
    }
  }
  return [...names];
}

/** The Service of this DNS (CoreDNS `plugin.NS`, `nsAddrs`). */
function nameServers(zone: Zone, apex: string): Answer {
  const { ttl } = zone.options;
  const found = nameServerEntries(zone, apex);
  const entries = found.kind === 'entries' ? found.entries : [];
  const targets = new Set(entries.map(({ target }) => target));
  if (targets.size === 0) targets.add(`${nameServerLabels}.${apex}`);
  const glue = [...targets].flatMap((target) => {
    const own = entries.filter((entry) => entry.target === target);
    return (['A', 'AAAA'] as const).flatMap((type) => addressRecords(target, type, ttl, own));
  });
  return positive(
    [...targets].map((target) => ({ name: apex, type: 'NS', ttl, target })),
    glue,
  );
}

/** CoreDNS `plugin.SOA`. Negative answers are kept by resolvers for `minimum` seconds (RFC 2308). */
function soaRecord({ options: { ttl }, serial }: Zone, apex: string): SoaRecord {
  return {
    name: apex,
    type: 'SOA',
    ttl: Math.min(ttl, 300),
    mname: `${nameServerLabels}.${apex}`,
    rname: `hostmaster.${apex}`,
    serial,
    refresh: 7200,
    retry: 1800,
    expire: 86_400,
    minimum: ttl,
  };
}

function positive(answers: readonly DnsRecord[], additionals: readonly DnsRecord[] = []): Answer {
  return { rcode: 'NOERROR', answers, authorities: [], additionals };
}

function negative(zone: Zone, apex: string, rcode: 'NOERROR' | 'NXDOMAIN'): Answer {
  return { rcode, answers: [], authorities: [soaRecord(zone, apex)], additionals: [] };
}

/** The domains of reverse names. */
const reverseDomains = ['in-addr.arpa', 'ip6.arpa'] as const;

/**
 * The address of a reverse name, in canonical form: `10.0.96.10.in-addr.arpa` → `10.96.0.10` (RFC 1035, 3.5; RFC
 * 3596, 2.5). Undefined for every other name, and for the name of a network.
 *
 * @param name in lower case, without a dot at the end.
 */
function addressOfReverseName(name: string): string | undefined {
  const [v4, v6] = reverseDomains;
  if (name.endsWith(`.${v4}`)) {
    const labels = name.slice(0, -v4.length - 1).split('.');
    const address = parseStrictAddress(labels.reverse().join('.'));
    return address?.family === 'IPv4' ? address.canonical : undefined;
  }
  if (!name.endsWith(`.${v6}`)) return undefined;
  const digits = name.slice(0, -v6.length - 1);
  if (!/^[0-9a-f](\.[0-9a-f]){31}$/.test(digits)) return undefined;
  const value = BigInt(`0x${digits.split('.').reverse().join('')}`);
  return formatAddress('IPv6', value);
}
