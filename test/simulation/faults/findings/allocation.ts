import { isIPv6 } from 'node:net';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { Scene } from '../scene.ts';
import { isIn, type Span, spanOf } from './addresses.ts';
import { keyOf, type Snapshot } from './snapshot.ts';

const claimAnnotation = 'servicenet.dev/allocation-claim';
const managedBy = 'ipaddress.kubernetes.io/managed-by';

/** Addresses and node ports that two have, that none has, that are out of range, or that are lacking. */
export function allocationFindings(snapshot: Snapshot, scene: Scene): string[] {
  const { services, addresses, cidrs } = snapshot;
  const found: string[] = [];
  const objects = new Map(addresses.map((address) => [address.metadata.name ?? '', address]));
  const holders = new Map<string, string>();
  const hold = (value: string, key: string): void => {
    const other = holders.get(value);
    if (other !== undefined && other !== key) found.push(`${value}: of ${other} and ${key}`);
    holders.set(value, key);
  };
  const spans = cidrs.flatMap(({ spec }) => (spec.cidrs ?? []).map(spanOf));
  for (const service of services) {
    const key = keyOf(service);
    for (const ip of clusterIPs(service)) {
      hold(ip, key);
      if (!spans.some((span) => isIn(ip, span))) found.push(`${key}: ${ip} is in no range`);
      const parent = objects.get(ip)?.spec.parentRef;
      if (`${parent?.namespace ?? ''}/${parent?.name ?? ''}` !== key)
        found.push(`${key}: ${ip} has no IPAddress of its own`);
    }
    for (const port of nodePorts(service)) {
      hold(String(port), key);
      if (port < scene.nodePorts.first || port > scene.nodePorts.last)
        found.push(`${key}: ${port} is out of range`);
    }
  }
  for (const [name, { metadata, spec }] of objects) {
    if (metadata.labels?.[managedBy] !== 'ipallocator.k8s.io') continue;
    const key = `${spec.parentRef?.namespace ?? ''}/${spec.parentRef?.name ?? ''}`;
    if (key !== 'default/kubernetes' && holders.get(name) !== key) found.push(`IPAddress ${name}: leaked`);
  }
  const room = roomIn(snapshot, scene, holders);
  for (const service of services) found.push(...lacks(service, scene, room));
  return found;
}

/** What a Service has not, though there is enough of it. */
function lacks(service: Service, { families }: Scene, room: (kind: string) => boolean): string[] {
  const { spec, metadata } = service;
  const key = keyOf(service);
  const isHeadless = (spec.clusterIPs ?? []).includes('None');
  const isDual = families.length > 1 && (spec.ipFamilyPolicy ?? 'SingleStack') !== 'SingleStack';
  const primary = spec.ipFamilies?.[0] ?? families[0] ?? 'IPv4';
  const wanted = isDual ? [...families] : [primary];
  const missing = isHeadless
    ? []
    : wanted.filter((family) => !clusterIPs(service).some((ip) => (isIPv6(ip) ? 'IPv6' : 'IPv4') === family));
  const hasPorts = spec.type === 'NodePort' || spec.type === 'LoadBalancer';
  const lacksPort = hasPorts && (spec.ports ?? []).some(({ nodePort = 0 }) => nodePort === 0);
  const needs = [...missing, ...(lacksPort ? ['port'] : [])];
  const claim = metadata.annotations?.[claimAnnotation];
  // Its user gets a warning: one family was asked for, and two.
  if (spec.ipFamilyPolicy === 'SingleStack' && (spec.ipFamilies?.length ?? 0) > 1)
    return isTold(service) ? [] : [`${key}: contradicts itself, and its user does not know`];
  // All or nothing: where one thing is out, nothing is taken of the others.
  if (needs.length > 0) return needs.every(room) ? [`${key}: lacks ${needs.join()}`] : [];
  return claim === undefined ? [] : [`${key}: still claims ${claim}`];
}

function isTold({ status }: Service): boolean {
  return (status.conditions ?? []).some(({ reason }) => reason === 'IPFamiliesNotValid');
}

/** Whether something of a kind is left. Of each range two addresses or one are never given. */
function roomIn(
  { services, addresses, cidrs }: Snapshot,
  { nodePorts: { first, last } }: Scene,
  holders: ReadonlyMap<string, string>,
): (kind: string) => boolean {
  const claimed = services.flatMap(({ metadata }) =>
    (metadata.annotations?.[claimAnnotation] ?? '').split(','),
  );
  const taken = new Set([
    ...holders.keys(),
    ...addresses.map(({ metadata }) => metadata.name ?? ''),
    ...claimed,
  ]);
  const ready = cidrs.filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined &&
      status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
  );
  const spans = ready.flatMap(({ spec }) => (spec.cidrs ?? []).map(spanOf));
  return (kind) => {
    if (kind === 'port') return [...taken].filter((value) => /^\d+$/.test(value)).length < last - first + 1;
    return spans.some((span) => span.family === kind && usedIn(span, taken) < usable(span));
  };
}

function usedIn(span: Span, taken: ReadonlySet<string>): number {
  return [...taken].filter((value) => /[.:]/.test(value) && isIn(value, span)).length;
}

function usable({ family, first, last }: Span): number {
  return Number(last - first) + 1 - (family === 'IPv4' ? 2 : 1);
}

/** Without `None`. */
export function clusterIPs({ spec }: Service): string[] {
  return (spec.clusterIPs ?? []).filter((ip) => ip !== 'None' && ip !== '');
}

export function nodePorts({ spec }: Service): number[] {
  const ports = (spec.ports ?? []).map(({ nodePort = 0 }) => nodePort);
  return [...ports, spec.healthCheckNodePort ?? 0].filter((port) => port > 0);
}
