import { parseStrictAddress, formatAddress } from '../../objects/address.ts';
import { addressRecords, srvRecords } from './entry-records.ts';
import { lookUp, nameServerEntries, nameServerLabels, serviceName } from './lookup.ts';
import type { Answer, DnsRecord, Question, SoaRecord } from './records.ts';
import type { Zone } from './zone.ts';

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
