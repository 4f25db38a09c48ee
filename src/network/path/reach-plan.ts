import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';
import type { ClusterView } from './cluster-view.ts';
import { destinationText, type ReachQuestion } from './reach-ends.ts';
import { type Reach, type ReachCell, reachSteps } from './reach.ts';

/** A cell that is another one with other policies. */
export interface ReachChange {
  /** Whose rows and columns these are. */
  readonly namespace: string;
  /** The row: `deployment/shop/cart`. */
  readonly source: string;
  /** The column: `deployment/shop/catalog:8080`. */
  readonly destination: string;
  readonly before: ReachCell;
  readonly after: ReachCell;
}

/**
 * Which cells other policies would change, in the namespaces that the policies are of.
 *
 * @param policies of all namespaces, as they shall be.
 * @param namespaces those of policies that change.
 */
export function* reachPlanSteps(
  view: ClusterView,
  policies: readonly NetworkPolicy[],
  namespaces: readonly string[],
  question: Omit<ReachQuestion, 'namespace' | 'from' | 'to' | 'most'>,
): Generator<undefined, readonly ReachChange[], undefined> {
  const edited = view.withPolicies(policies);
  const changes: ReachChange[] = [];
  for (const namespace of namespaces) {
    const before = yield* reachSteps(view, { ...question, namespace });
    const after = yield* reachSteps(edited, { ...question, namespace });
    for (const row of before.sources.keys()) {
      yield;
      pushAll(changes, rowChanges(before, after, row));
    }
  }
  return changes;
}

/** The cells of a row that differ in two answers with the same rows and columns. */
function rowChanges(before: Reach, after: Reach, row: number): readonly ReachChange[] {
  const { namespace, sources, destinations } = before;
  const source = sources[row]?.name ?? '';
  return destinations.flatMap((destination, column): ReachChange[] => {
    const cell = before.cells[row]?.[column];
    const next = after.cells[row]?.[column];
    if (cell === undefined || next === undefined || decidesAlike(cell, next)) return [];
    return [{ namespace, source, destination: destinationText(destination), before: cell, after: next }];
  });
}

/** Whether two cells have the same verdict by the same objects, whichever Pods stand for the others. */
function decidesAlike(a: ReachCell, b: ReachCell): boolean {
  const decided = ({ verdict, deciders }: ReachCell): unknown => [
    verdict,
    deciders.map(({ verdict, object, field, message }) => [verdict, object, field, message]),
  ];
  return jsonEqual(decided(a), decided(b));
}
