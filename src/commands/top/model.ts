/** The content of the live view, computed from objects. Pure. */
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { type ObjectKey, splitKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { numberAt, textAt } from '../../objects/read.ts';
import type { EgressRow } from '../egress-rows.ts';
import { externalAddresses, port } from '../tables.ts';
import { ipFamilies } from '../../objects/address.ts';

/** One Service. */
export interface ServiceRow {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly clusterIP: string;
  readonly external: string;
  readonly ports: string;
  /** Undefined for Services without endpoints by design (ExternalName). */
  readonly endpoints: { readonly ready: number; readonly total: number } | undefined;
}

/** Which Pod of a Service answered last. */
export interface LastAnswer {
  readonly service: ObjectKey;
  /** Its name. */
  readonly pod: string;
  /** How much it has answered in all, and all Pods of the Service together. */
  readonly count: number;
  readonly all: number;
}

/** Usage of a pool in one family. */
export interface PoolRow {
  readonly name: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly used: number;
  /** Rounded above 2^53. */
  readonly total: number;
}

/** An Event. */
export interface EventLine {
  /** RFC 3339. */
  readonly time: string;
  readonly warning: boolean;
  /** `service/web`. */
  readonly object: string;
  readonly namespace: string;
  readonly reason: string;
  readonly message: string;
}

/** The whole content. */
export interface View {
  readonly services: readonly ServiceRow[];
  /** Of Services whose Pods have answered something, the latest first; empty where that is not known. */
  readonly answers: readonly LastAnswer[];
  readonly pools: readonly PoolRow[];
  /** The addresses of EgressIPs, by the names of these. */
  readonly egress: readonly EgressRow[];
  /** Oldest first. */
  readonly events: readonly EventLine[];
  readonly nodes: { readonly ready: number; readonly total: number };
  /** Why the API server cannot be reached, and what to do: the rest is then the last known state. */
  readonly problem?: string;
}

/** The row of a Service. Of two families the primary one is counted, as both have the same Pods. */
export function serviceRow(service: Service, slices: readonly EndpointSlice[]): ServiceRow {
  const { metadata, spec, status } = service;
  const clusterIPs = spec.clusterIPs ?? [];
  const family = spec.ipFamilies?.[0];
  const counted = slices.filter((slice) => family === undefined || slice.addressType === family);
  let ready = 0;
  let total = 0;
  for (const { endpoints } of counted) {
    for (const { conditions } of endpoints ?? []) {
      if (conditions?.terminating === true) continue;
      total++;
      if (conditions?.ready !== false) ready++;
    }
  }
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    type: clusterIPs[0] === 'None' ? 'Headless' : (spec.type ?? ''),
    clusterIP: clusterIPs.join(',') || '<none>',
    external: externalAddresses(spec, status),
    ports: (spec.ports ?? []).map(port).join(',') || '<none>',
    endpoints: spec.type === 'ExternalName' ? undefined : { ready, total },
  };
}

/** @param counts how much each Pod of the Service has answered, the last one last. */
export function lastAnswer(service: ObjectKey, counts: ReadonlyMap<ObjectKey, number>): LastAnswer {
  const [pod, count] = [...counts].at(-1) ?? ['', 0];
  let all = 0;
  for (const each of counts.values()) all += each;
  return { service, pod: splitKey(pod).name, count, all };
}

/** The rows of an AddressPool: one for each family that it has addresses of. */
export function poolRows(pool: KubeObject): PoolRow[] {
  const status: unknown = Reflect.get(pool, 'status');
  return ipFamilies.flatMap((family) => {
    const member = family.toLowerCase();
    const total = numberAt(status, member, 'total');
    if (total === 0) return [];
    return [{ name: pool.metadata.name ?? '', family, used: numberAt(status, member, 'used'), total }];
  });
}

/** The line of a core/v1 Event. */
export function eventSummary(event: KubeObject): EventLine {
  const kind = textAt(event, 'involvedObject', 'kind').toLowerCase();
  return {
    time:
      textAt(event, 'lastTimestamp') ||
      textAt(event, 'eventTime') ||
      (event.metadata.creationTimestamp ?? ''),
    warning: textAt(event, 'type') === 'Warning',
    object: `${kind}/${textAt(event, 'involvedObject', 'name')}`,
    namespace: textAt(event, 'involvedObject', 'namespace'),
    reason: textAt(event, 'reason'),
    message: textAt(event, 'message'),
  };
}
