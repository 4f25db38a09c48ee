/** Which Pods use more local storage than they may (pkg/kubelet/eviction `localStorageEviction`). PURE */
import { formatQuantity, parseQuantity, quantityIn } from '../../../objects/formats/quantity.ts';
import type { Container, PodSpec } from '../../../objects/types/core.generated.ts';
import { isSidecar } from '../../../objects/pods.ts';

/** Bytes of local storage that a Pod uses. */
export interface LocalUsage {
  /** By volume. */
  readonly volumes: ReadonlyMap<string, number>;
  /** By container: what it has written outside of volumes, and its logs. */
  readonly containers: ReadonlyMap<string, number>;
}

/** Whether anything of a Pod is limited. */
export function limitsStorage(spec: PodSpec): boolean {
  return (
    (spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined) ||
    podLimit(spec) !== undefined
  );
}

/** Why a Pod is evicted, in the kubelet's words; undefined where it stays. */
export function evictionMessage(spec: PodSpec, usage: LocalUsage): string | undefined {
  for (const { name, emptyDir } of spec.volumes ?? []) {
    const limit = emptyDir?.sizeLimit;
    if (limit === undefined || (usage.volumes.get(name) ?? 0) <= bytesOf(limit)) continue;
    return `Usage of EmptyDir volume "${name}" exceeds the limit "${limit}". `;
  }
  const total = podLimit(spec);
  if (total === undefined) return undefined;
  const onDisk = (spec.volumes ?? []).filter(
    ({ emptyDir }) => emptyDir !== undefined && emptyDir.medium !== 'Memory',
  );
  const used =
    sum([...usage.containers.values()]) + sum(onDisk.map(({ name }) => usage.volumes.get(name) ?? 0));
  if (used > total.bytes) {
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${total.text}. `;
  }
  for (const container of spec.containers ?? []) {
    const limit = limitOf(container);
    if (limit === undefined || (usage.containers.get(container.name) ?? 0) <= bytesOf(limit)) continue;
    return `Container ${container.name} exceeded its local ephemeral storage limit "${limit}". `;
  }
  return undefined;
}

/** The limit of all containers together; those without a limit count as nothing (`resourcehelper.PodLimits`). */
function podLimit({
  containers = [],
  initContainers = [],
}: PodSpec): { readonly bytes: number; readonly text: string } | undefined {
  const limits = [...containers, ...initContainers.filter(isSidecar)].map(limitOf);
  const ofInits = initContainers.filter((each) => !isSidecar(each)).map(limitOf);
  const known = [...limits, ...ofInits].filter((limit) => limit !== undefined);
  if (known.length === 0) return undefined;
  const total = quantitySum(limits.filter((limit) => limit !== undefined));
  const text = [total, ...ofInits.filter((limit) => limit !== undefined)].reduce((most, each) =>
    bytesOf(each) > bytesOf(most) ? each : most,
  );
  return { bytes: bytesOf(text), text };
}

/** In the format of the first. */
function quantitySum([first = '0', ...others]: readonly string[]): string {
  const { nanos, format } = parseQuantity(first);
  return formatQuantity({
    nanos: others.reduce((sum, each) => sum + parseQuantity(each).nanos, nanos),
    format,
  });
}

function limitOf({ resources }: Container): string | undefined {
  return resources?.limits?.['ephemeral-storage'];
}

function bytesOf(quantity: string): number {
  return Number(quantityIn(quantity, 'units'));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
