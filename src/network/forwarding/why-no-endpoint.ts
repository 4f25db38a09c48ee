import type { Pod, Service, ServicePort } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { parseAddress } from '../../objects/address.ts';
import { isReady } from '../../objects/endpoints.ts';
import { conditionOf, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { isPodReady, isPodTerminating, lastingPorts } from '../../objects/pods.ts';
import type { NoEndpointReason } from '../../objects/reasons.ts';

/** Why a Service has no ready endpoint: the conditions of an endpoint in their order, up to the first that fails. */

export interface EndpointCheck {
  readonly isMet: boolean;
  readonly message: string;
}

export interface NoEndpoint {
  readonly reason: NoEndpointReason;
  /** A sentence without a full stop: that of the last check. */
  readonly message: string;
  readonly checks: readonly EndpointCheck[];
}

/** As many Pods are named. */
const maxNamed = 3;

/**
 * Explains it by the rules of the EndpointSlice controller (`staging/src/k8s.io/endpointslice`).
 *
 * @param pods of the Service's namespace.
 * @param slices of the Service.
 * @param port the number or node port that is asked for; undefined: any.
 * @returns undefined where there is a ready endpoint.
 */
export function whyNoEndpoint(
  service: Service,
  pods: readonly Pod[],
  slices: readonly EndpointSlice[],
  port?: number,
): NoEndpoint | undefined {
  const asked = (service.spec.ports ?? []).filter((each) => port === undefined || hasNumber(each, port));
  const names = asked.map(({ name = '' }) => name);
  const isOfPort = ({ ports }: EndpointSlice): boolean =>
    names.length === 0 || (ports ?? []).some(({ name = '' }) => names.includes(name));
  if (slices.some((slice) => isOfPort(slice) && (slice.endpoints ?? []).some(isReady))) return undefined;
  const checks: EndpointCheck[] = [];
  const failed = (reason: NoEndpointReason, message: string): NoEndpoint => ({
    ...{ reason, message, checks: [...checks, { isMet: false, message }] },
  });
  const met = (message: string): unknown => checks.push({ isMet: true, message });

  const { selector = {}, publishNotReadyAddresses = false } = service.spec;
  const wanted = Object.entries(selector);
  if (wanted.length === 0) {
    return slices.some(({ endpoints }) => (endpoints ?? []).length > 0)
      ? failed('NotInSlicesYet', 'it has no selector, and its EndpointSlices have no ready endpoint')
      : failed('NoSelector', 'it has no selector, and there are no EndpointSlices for it');
  }
  const labels = wanted.map(([key, value]) => `${key}=${value}`).join(',');
  const matching = pods.filter(({ metadata }) =>
    wanted.every(([key, value]) => metadata.labels?.[key] === value),
  );
  if (matching.length === 0) {
    return failed('SelectorMatchesNothing', `no Pod has the labels ${labels}${nearMisses(wanted, pods)}`);
  }
  met(`the selector ${labels} matches ${counted(matching.length)}`);
  const running = matching.filter(({ status }) => status.phase === 'Running');
  if (running.length === 0) {
    return failed('PodsNotRunning', `none of them runs: ${named(matching, whyNotRunning)}`);
  }
  met(`${running.length} of them run${running.length === 1 ? 's' : ''}`);
  const ready = publishNotReadyAddresses ? running : running.filter(isPodReady);
  if (ready.length === 0) {
    return failed('PodsNotReady', `none of them is ready: ${named(running, whyNotReady)}`);
  }
  met(`${ready.length} of them ${ready.length === 1 ? 'is' : 'are'} ready`);
  const lasting = ready.filter((pod) => publishNotReadyAddresses || !isPodTerminating(pod));
  if (lasting.length === 0) {
    return failed('PodsTerminating', `those are being deleted: ${named(ready, () => '')}`);
  }
  const missing = asked.filter((each) => !lasting.some((pod) => hasTarget(pod, each)));
  if (asked.length > 0 && missing.length === asked.length) {
    const ports = missing.map(({ targetPort = '', protocol = 'TCP' }) => `${targetPort}/${protocol}`);
    return failed('PortNameNotFound', `no container of theirs has a port named ${ports.join(', ')}`);
  }
  met('the target port is there');
  const families = service.spec.ipFamilies ?? [];
  const hasFamily = (pod: Pod): boolean =>
    (pod.status.podIPs ?? []).some(({ ip }) =>
      families.some((family) => parseAddress(ip)?.family === family),
    );
  if (families.length > 0 && !lasting.some(hasFamily)) {
    return failed('OtherFamily', `none of them has an address of ${families.join(' or ')}`);
  }
  return failed(
    'NotInSlicesYet',
    'its EndpointSlices do not have them yet: does the controller that writes these run?',
  );
}

/**
 * The Pods that {@link whyNoEndpoint} may name, for many Services at once: those that a selector matches; where it matches
 * none, the first that it nearly matches. Each Pod is looked at once.
 *
 * @param pods of the namespace, which is that of all the Services.
 * @returns by Services, in the order of their names.
 */
export function podsThatExplain(
  services: readonly Service[],
  pods: Iterable<Pod>,
): ReadonlyMap<ObjectKey, readonly Pod[]> {
  const selectors = services.map(({ spec }) => Object.entries(spec.selector ?? {}));
  /** By the labels with values that selectors have. */
  const byLabel = new Map(selectors.flat().map((label) => [label.join('='), new Array<Pod>()]));
  /** By the keys of selectors that have no other. */
  const first = new Map(
    selectors.flatMap(([[key] = [''], ...others]) => (others.length === 0 ? [[key, new Array<Pod>()]] : [])),
  );
  for (const pod of pods) {
    for (const label of Object.entries(pod.metadata.labels ?? {})) {
      byLabel.get(label.join('='))?.push(pod);
      const named = first.get(label[0]);
      if (named !== undefined) keepFirst(named, pod);
    }
  }
  return new Map(
    services.map((service, index) => {
      const wanted = selectors[index] ?? [];
      const lists = wanted.map((label) => byLabel.get(label.join('=')) ?? []);
      const lacks = ({ metadata: { labels } }: Pod): number =>
        wanted.filter(([key, value]) => labels?.[key] !== value).length;
      const [rarest = []] = lists.toSorted((a, b) => a.length - b.length);
      const matching = rarest.filter((pod) => lacks(pod) === 0);
      if (matching.length > 0) return [keyOf(service), matching.toSorted(byName)];
      if (wanted.length === 1) return [keyOf(service), first.get(wanted[0]?.[0] ?? '') ?? []];
      const near = new Array<Pod>();
      for (const pod of new Set(lists.flat())) if (lacks(pod) === 1) keepFirst(near, pod);
      return [keyOf(service), near];
    }),
  );
}

/** Adds a Pod to those that are named, unless it is behind all of them. */
function keepFirst(named: Pod[], pod: Pod): void {
  const last = named[maxNamed - 1];
  if (last !== undefined && byName(last, pod) < 0) return;
  named.push(pod);
  named.sort(byName);
  named.length = Math.min(named.length, maxNamed);
}

function byName({ metadata: a }: Pod, { metadata: b }: Pod): number {
  return (a.name ?? '') < (b.name ?? '') ? -1 : 1;
}

function hasNumber({ port, nodePort }: ServicePort, asked: number): boolean {
  return port === asked || nodePort === asked;
}

/** A number needs no declaration. */
function hasTarget(pod: Pod, { targetPort, protocol = 'TCP' }: ServicePort): boolean {
  if (typeof targetPort !== 'string') return true;
  return lastingPorts(pod.spec).some(
    (each) => each.name === targetPort && (each.protocol ?? 'TCP') === protocol,
  );
}

/** Pods that lack one label of several, as of a typing error. */
function nearMisses(wanted: readonly (readonly [string, string])[], pods: readonly Pod[]): string {
  const near = pods.flatMap((pod) => {
    const wrong = wanted.filter(([key, value]) => pod.metadata.labels?.[key] !== value);
    const [first, second] = wrong;
    const has = first === undefined ? undefined : pod.metadata.labels?.[first[0]];
    // Of a single label, the key at least has to be there.
    if (first === undefined || second !== undefined || (wanted.length === 1 && has === undefined)) return [];
    const [key, value] = first;
    return [`Pod ${keyOf(pod)} ${has === undefined ? `lacks ${key}=${value}` : `has ${key}=${has}`}`];
  });
  return near.length === 0 ? '' : `: ${near.slice(0, maxNamed).join(', ')}`;
}

function counted(pods: number): string {
  return pods === 1 ? '1 Pod' : `${pods} Pods`;
}

function named(pods: readonly Pod[], why: (pod: Pod) => string): string {
  const first = pods.slice(0, maxNamed).map((pod) => [pod.metadata.name ?? '', why(pod)]);
  const more = pods.length > maxNamed ? ` and ${pods.length - maxNamed} more` : '';
  return `${first.map((words) => words.filter((word) => word !== '').join(' ')).join(', ')}${more}`;
}

function whyNotRunning(pod: Pod): string {
  const { phase = 'Pending', conditions } = pod.status;
  const scheduled = conditionOf(conditions, 'PodScheduled');
  const unscheduled = scheduled?.status === 'False' ? scheduled.message : undefined;
  const detail = unscheduled ?? waitingReason(pod);
  return detail === undefined || detail === '' ? `is ${phase}` : `is ${phase} (${detail})`;
}

function whyNotReady(pod: Pod): string {
  const detail = waitingReason(pod) ?? conditionOf(pod.status.conditions, 'Ready')?.message ?? '';
  return detail === '' ? '' : `(${detail})`;
}

/** Such as CrashLoopBackOff. */
function waitingReason({ status }: Pod): string | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses].flatMap(
    ({ state }) => state?.waiting?.reason ?? [],
  )[0];
}
