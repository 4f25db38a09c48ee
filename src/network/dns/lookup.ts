import { parseStrictAddress } from '../../objects/address.ts';
import { joinKey, type ObjectKey, splitKey } from '../../objects/key.ts';
import type { Entry } from './entry-records.ts';
import type { Zone, ZonePort } from './zone.ts';

/** The meaning of a name of the zone. */
export type FoundName =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] }
  | { readonly kind: 'alias'; readonly target: string }
  /** It exists, and has no addresses: the apex, `svc`, a namespace. */
  | { readonly kind: 'empty' };

const empty: FoundName = { kind: 'empty' };
/** The name server of a zone without a Service (CoreDNS `defaultNSName`). */
export const nameServerLabels = 'ns.dns';

/**
 * The name with these labels below the apex (CoreDNS `parseRequest`, `findServices`, `findPods`).
 *
 * @returns undefined where there is none: NXDOMAIN.
 */
export function lookUp(zone: Zone, labels: readonly string[], apex: string): FoundName | undefined {
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
export function nameServerEntries(zone: Zone, apex: string): FoundName {
  return serviceEntries(zone, zone.options.service, apex, {}) ?? empty;
}

/** `web.shop.svc` and the apex. */
export function serviceName(key: ObjectKey, apex: string): string {
  const { namespace, name } = splitKey(key);
  return `${name}.${namespace}.svc.${apex}`;
}

function withoutUnderscore(label: string): string {
  return label.startsWith('_') ? label.slice(1) : label;
}
