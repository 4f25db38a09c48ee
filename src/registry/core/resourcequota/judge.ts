/** Checks a write against quotas (`apiserver/pkg/admission/plugin/resourcequota` CheckRequest). */
import type { ResourceQuota } from '../../../objects/types/core.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { formatQuantity, parseQuantity } from '../../../objects/quantity.ts';
import { listAt, recordAt, scalarAt, textAt } from '../../../objects/read.ts';

import type { Usage } from './usage.ts';

/** The result of a quota: its `used` with the write, or the error. Undefined: the quota does not apply. */
export type QuotaAnswer =
  { readonly used: Record<string, string> } | { readonly refusal: string } | undefined;

/** @param added the increase of usage by the write. */
export function judgeQuota(quota: ResourceQuota, added: Usage): QuotaAnswer {
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
