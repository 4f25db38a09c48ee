import type { NodeRow, PodRow, PodState, ServiceRow, SliceRow } from '../../../view/rows/rows.ts';
import { isFoundIn, labelTexts } from '../../../view/rows/search.ts';
import type { RowStore } from '../state/row-store.ts';

/** A Service on the Map, with what is drawn beside it. */
export interface MapRow {
  readonly key: string;
  readonly service: ServiceRow;
  readonly slices: readonly SliceRow[];
  /** Each endpoint of its slices once, with its Pod; those that are not ready first. */
  readonly members: readonly MapMember[];
}

/** An address behind a Service. */
export interface MapMember {
  readonly key: string;
  /** Absent: it is no Pod's, or that is not known. */
  readonly pod: PodRow | undefined;
  readonly address: string;
  readonly node: string | undefined;
  readonly isReady: boolean;
  /** Those of its slices, by their places in {@link MapRow.slices}. */
  readonly slices: readonly number[];
}

/** Of an address without a Pod, what its slice says. */
export function stateOf({ pod, isReady }: MapMember): PodState {
  return pod?.state ?? (isReady ? 'ready' : 'not ready');
}

/** More Pods than this are folded into counts. */
export const mostMembers = 6;

/**
 * Services with trouble first, then by name.
 *
 * @param before the rows of the last time: those of which nothing has changed stay the same objects.
 */
export function mapRows(rows: RowStore, before: readonly MapRow[] = []): readonly MapRow[] {
  const known = new Map(before.map((row) => [row.key, row]));
  const slicesOf = Map.groupBy(rows.all('slice'), ({ service }) => service ?? '');
  return rows
    .all('service')
    .map((service) => {
      const slices = (slicesOf.get(service.key) ?? []).toSorted(byKey);
      const last = known.get(service.key);
      if (last !== undefined && isOf(last, service, slices, rows)) return last;
      return { key: service.key, service, slices, members: membersOf(slices, rows) };
    })
    .toSorted((a, b) => rank(a.service) - rank(b.service) || byKey(a, b));
}

/** A row of the store that did not change is the same object. */
function isOf(
  { service: of, slices: its, members }: MapRow,
  service: ServiceRow,
  slices: readonly SliceRow[],
  rows: RowStore,
): boolean {
  return (
    of === service &&
    its.length === slices.length &&
    its.every((slice, index) => slice === slices[index]) &&
    members.every(({ key, pod }) => pod === rows.get('pod', key))
  );
}

function rank({ trouble }: ServiceRow): number {
  return trouble === undefined ? 1 : 0;
}

function byKey(a: { readonly key: string }, b: { readonly key: string }): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

function membersOf(slices: readonly SliceRow[], rows: RowStore): readonly MapMember[] {
  const members = new Map<string, MapMember>();
  for (const [index, { endpoints }] of slices.entries()) {
    for (const { pod: podKey, address, node, ready } of endpoints) {
      // Of two families a Pod has an endpoint in each.
      const key = podKey ?? address;
      const before = members.get(key);
      const pod = podKey === undefined ? undefined : rows.get('pod', podKey);
      members.set(key, {
        ...{ key, pod, node: node ?? pod?.node },
        address: before === undefined ? address : `${before.address}, ${address}`,
        isReady: ready || before?.isReady === true,
        slices: [...(before?.slices ?? []), index],
      });
    }
  }
  return [...members.values()].toSorted((a, b) => Number(a.isReady) - Number(b.isReady) || byKey(a, b));
}

/** Nodes by name, each with the number that stands for it. */
export function numberedNodes(
  rows: RowStore,
): readonly { readonly node: NodeRow; readonly number: number }[] {
  return rows
    .all('node')
    .toSorted(byKey)
    .map((node, index) => ({ node, number: index + 1 }));
}

/** Whether a search finds a Service: by name, address, label, selector, reason, or by its Pods. Words all have to be found. */
export function isFound({ service, members }: MapRow, search: string): boolean {
  if (search.trim() === '') return true;
  const { key, type, clusterIP, external, ports, labels, selector = {}, trouble } = service;
  const pairs = [labels, selector].flatMap(labelTexts);
  const { reason = '', message = '' } = trouble ?? {};
  const texts = [key, type, clusterIP, external, ports, ...pairs, reason, message];
  const ofPods = members.flatMap(({ key: of, address, node = '', pod }) => [
    of,
    address,
    node,
    pod?.trouble?.reason ?? '',
  ]);
  return isFoundIn([...texts, ...ofPods], search);
}
