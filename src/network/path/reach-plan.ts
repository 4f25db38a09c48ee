import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';
import type { ClusterView } from './cluster-view.ts';
import { DestinationError } from './destination.ts';
import { type Column, destinationText, type ReachQuestion, reachTableSteps, type Row } from './reach-ends.ts';
import { type KnownDecisions, type ReachCell, reachRowSteps } from './reach.ts';

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

/** Cells of a namespace at most: a plan of all takes seconds, and has to be whole. */
const mostCells = 250_000;

/**
 * Which cells other policies would change, in the namespaces that the policies are of.
 *
 * @param policies of all namespaces, as they shall be.
 * @param namespaces those of policies that change.
 * @throws {DestinationError} where a namespace has too many workloads and ports.
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
    const before = yield* reachTableSteps(view, { ...question, namespace });
    const { sources, destinations } = before.total;
    if (sources * destinations > mostCells) {
      const counts = `${sources} workloads, and ${destinations} to connect to`;
      throw new DestinationError(
        `namespace ${namespace} has ${counts}: a plan compares ${mostCells} pairs at most`,
      );
    }
    const after = yield* reachTableSteps(edited, { ...question, namespace });
    const [knownBefore, knownAfter]: readonly [KnownDecisions, KnownDecisions] = [new Map(), new Map()];
    // Both have the same rows and columns.
    for (const [index, row] of before.rows.entries()) {
      const next = after.rows[index] ?? row;
      const was = yield* reachRowSteps(view, question.protocol, row, before.columns, knownBefore);
      const is = yield* reachRowSteps(edited, question.protocol, next, after.columns, knownAfter);
      pushAll(changes, rowChanges(namespace, row, before.columns, was, is));
    }
  }
  return changes;
}

/** The cells of a row that differ. */
function rowChanges(
  namespace: string,
  { name: source }: Row,
  columns: readonly Column[],
  was: readonly ReachCell[],
  is: readonly ReachCell[],
): readonly ReachChange[] {
  return columns.flatMap((column, index): ReachChange[] => {
    const [before, after] = [was[index], is[index]];
    if (before === undefined || after === undefined || decidesAlike(before, after)) return [];
    return [{ namespace, source, destination: destinationText(column), before, after }];
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
