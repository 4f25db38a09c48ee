import type { KubeObject } from '../../../objects/meta.ts';
import { podRequestsInUse, podResources } from '../../../objects/pods.ts';
import { parseQuantity, formatQuantity } from '../../../objects/formats/quantity.ts';
import { listAt, numberAt, recordAt, scalarAt, textAt } from '../../../objects/json.ts';
import type { ResourceQuota } from '../../../objects/types/core.generated.ts';

/**
 * - Usage of objects in quotas (`pkg/quota/v1/evaluator`). Amounts are in billionths, as in quantities.
 * - Checks a write against quotas (`apiserver/pkg/admission/plugin/resourcequota` CheckRequest).
 */

/** Amounts by the name of a resource. */
export type Usage = ReadonlyMap<string, bigint>;

interface GroupPlural {
  readonly group: string;
  readonly plural: string;
}

const one = 1_000_000_000n;
const countPrefix = 'count/';
/** Also counted under their own name, besides `count/…`. */
const countedKinds = new Set([
  'services',
  'pods',
  'persistentvolumeclaims',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
]);

/** The kind whose objects use a resource of a quota; undefined for resources that are not tracked. */
export function userOf(resource: string): GroupPlural | undefined {
  if (resource.startsWith(countPrefix)) {
    const name = resource.slice(countPrefix.length);
    const dot = name.indexOf('.');
    return dot < 0 ? { group: '', plural: name } : { group: name.slice(dot + 1), plural: name.slice(0, dot) };
  }
  if (countedKinds.has(resource)) return { group: '', plural: resource };
  if (resource === 'services.nodeports' || resource === 'services.loadbalancers')
    return { group: '', plural: 'services' };
  if (resource === 'requests.storage' || resource.includes('.storageclass.storage.k8s.io/')) {
    return { group: '', plural: 'persistentvolumeclaims' };
  }
  const compute = /^(?:requests\.|limits\.)?(?:cpu|memory|ephemeral-storage|hugepages-.+)$/;
  if (compute.test(resource) || /^requests\..+\//.test(resource)) return { group: '', plural: 'pods' };
  return undefined;
}

/** The usage of one object. */
export function usageOf({ group, plural }: GroupPlural, object: KubeObject): Usage {
  const usage = new Map([[`${countPrefix}${plural}${group === '' ? '' : `.${group}`}`, one]]);
  if (group !== '') return usage;
  switch (plural) {
    case 'pods':
      if (isLive(object)) addPod(usage, object);
      return usage;
    case 'services':
      addService(usage, object);
      break;
    case 'persistentvolumeclaims':
      addClaim(usage, object);
      break;
  }
  if (countedKinds.has(plural)) usage.set(plural, one);
  return usage;
}

/** The increase of usage by an update; never negative. */
export function increase(next: Usage, before: Usage): Usage {
  const more = new Map<string, bigint>();
  for (const [name, amount] of next) {
    const added = amount - (before.get(name) ?? 0n);
    if (added > 0n) more.set(name, added);
  }
  return more;
}

/** Adds amounts to a sum. */
export function addUsage(sum: Map<string, bigint>, usage: Usage): void {
  for (const [name, amount] of usage) sum.set(name, (sum.get(name) ?? 0n) + amount);
}

/** `services.nodeports`: one per port, or the explicit ones where a load balancer does not allocate them. */
function addService(usage: Map<string, bigint>, object: KubeObject): void {
  const type = textAt(object, 'spec', 'type');
  const ports = listAt(object, 'spec', 'ports');
  const named = ports.filter((port) => numberAt(port, 'nodePort') > 0).length;
  let nodePorts = 0;
  if (type === 'NodePort') nodePorts = ports.length;
  if (type === 'LoadBalancer') {
    nodePorts = recordAt(object, 'spec')['allocateLoadBalancerNodePorts'] === false ? named : ports.length;
    usage.set('services.loadbalancers', one);
  }
  if (type === 'NodePort' || type === 'LoadBalancer')
    usage.set('services.nodeports', BigInt(nodePorts) * one);
}

function addClaim(usage: Map<string, bigint>, object: KubeObject): void {
  const storage = amountOf(scalarAt(object, 'spec', 'resources', 'requests', 'storage'));
  const storageClass = textAt(object, 'spec', 'storageClassName');
  usage.set('requests.storage', storage);
  if (storageClass === '') return;
  usage.set(`${storageClass}.storageclass.storage.k8s.io/requests.storage`, storage);
  usage.set(`${storageClass}.storageclass.storage.k8s.io/persistentvolumeclaims`, one);
}

/** A Pod that has ended counts only as an object. */
function isLive(pod: KubeObject): boolean {
  const phase = textAt(pod, 'status', 'phase');
  return phase !== 'Succeeded' && phase !== 'Failed';
}

function addPod(usage: Map<string, bigint>, pod: KubeObject): void {
  usage.set('pods', one);
  for (const [name, amount] of podRequestsInUse(pod)) {
    usage.set(`requests.${name}`, amount);
    if (!name.includes('/')) usage.set(name, amount);
  }
  for (const [name, amount] of podResources(pod, 'limits')) usage.set(`limits.${name}`, amount);
}

function amountOf(text: string | undefined): bigint {
  return text === undefined ? 0n : parseQuantity(text).nanos;
}

/** The result of a quota: its `used` with the write, or the error. Undefined: the quota does not apply. */
export type QuotaDecision =
  { readonly used: Record<string, string> } | { readonly refusal: string } | undefined;

/** @param added the increase of usage by the write. */
export function evaluateQuota(quota: ResourceQuota, added: Usage): QuotaDecision {
  const { name = '' } = quota.metadata;
  const { hard = {} } = quota.spec;
  const concerned = [...added.keys()].filter((resource) => Object.hasOwn(hard, resource)).sort();
  if (concerned.length === 0) return undefined;
  const { hard: limits = {}, used = {} } = quota.status;
  const unknown = concerned.filter(
    (resource) => !Object.hasOwn(limits, resource) || !Object.hasOwn(used, resource),
  );
  if (unknown.length > 0)
    return { refusal: `status unknown for quota: ${name}, resources: ${unknown.join(',')}` };
  const next = { ...used };
  const exceeded: string[] = [];
  for (const resource of concerned) {
    const amount = added.get(resource) ?? 0n;
    if (amount === 0n) continue;
    const before = parseQuantity(used[resource] ?? '0');
    const limit = parseQuantity(limits[resource] ?? '0');
    const total = before.nanos + amount;
    if (total > limit.nanos) exceeded.push(resource);
    next[resource] = formatQuantity({
      nanos: total,
      format: used[resource] === '0' ? limit.format : before.format,
    });
  }
  if (exceeded.length === 0) return { used: next };
  const list = (amount: (resource: string) => string) =>
    exceeded.map((resource) => `${resource}=${amount(resource)}`).join(',');
  const requested = list((resource) =>
    formatQuantity({
      nanos: added.get(resource) ?? 0n,
      format: parseQuantity(limits[resource] ?? '0').format,
    }),
  );
  const had = list((resource) => used[resource] ?? '0');
  const limited = list((resource) => limits[resource] ?? '0');
  return { refusal: `exceeded quota: ${name}, requested: ${requested}, used: ${had}, limited: ${limited}` };
}

const explicit = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'];

/**
 * The error for requests and limits that containers must have because a quota counts them (`podEvaluator.Constraints`);
 * undefined when all are set.
 */
export function missingRequests(quota: ResourceQuota, pod: KubeObject): string | undefined {
  const containers = [...listAt(pod, 'spec', 'containers'), ...listAt(pod, 'spec', 'initContainers')];
  const missing = explicit
    .filter((resource) => Object.hasOwn(quota.spec.hard ?? {}, resource))
    .sort()
    .flatMap((resource) => {
      const names = containers
        .filter((container) => !states(container, resource))
        .map((container) => textAt(container, 'name'));
      return names.length === 0 ? [] : [`${resource} for: ${[...new Set(names)].sort().join(',')}`];
    });
  if (missing.length === 0) return undefined;
  return `failed quota: ${quota.metadata.name ?? ''}: must specify ${missing.join('; ')}`;
}

function states(container: unknown, resource: string): boolean {
  const kind = resource.startsWith('limits.') ? 'limits' : 'requests';
  const name = resource.replace(/^(?:requests|limits)\./, '');
  return scalarAt(recordAt(container, 'resources', kind), name) !== undefined;
}
