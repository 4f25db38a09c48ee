import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { ClusterView } from './cluster-view.ts';
import {
  type Column,
  type DestinationEnd,
  type ReachDestination,
  type ReachQuestion,
  type ReachSource,
  reachTableSteps,
  type Row,
  type SourceEnd,
  type Sources,
  type Target,
} from './reach-ends.ts';
import type { Stage } from './stages.ts';
import { nodePlanSteps, type Trace, tracePath } from './trace.ts';

/**
 * Who reaches whom: the workloads of a namespace, directly and not through Services, with what decides. Other namespaces are
 * one row and one column each.
 */

/**
 * `open`: nothing isolates the Pods. `allowed`: a rule lets the connection pass. `differs`: some Pods are reached, and others
 * are not. `unknown`: the objects do not decide it. `unasked`: there is no pair, or none of the namespace.
 */
export type ReachVerdict = 'open' | 'allowed' | 'denied' | 'differs' | 'unknown' | 'unasked';

/** What decides connections of a cell, and the first of them as `servicenet trace` takes it. */
export interface ReachDecider extends Pick<Stage, 'object' | 'field' | 'message'> {
  readonly verdict: Exclude<ReachVerdict, 'differs' | 'unasked'>;
  readonly from: string;
  readonly to: string;
}

/** The connections of one row to one column. */
export interface ReachCell {
  readonly verdict: ReachVerdict;
  /** Each once, of ten at most. */
  readonly deciders: readonly ReachDecider[];
}

/** Rows and columns, and the cells by both. */
export interface Reach {
  readonly namespace: string;
  readonly protocol: Protocol;
  readonly sources: readonly ReachSource[];
  readonly destinations: readonly ReachDestination[];
  /** `cells[source][destination]`. */
  readonly cells: readonly (readonly ReachCell[])[];
  /** How many rows and columns there are in all. */
  readonly total: { readonly sources: number; readonly destinations: number };
}

const mostDeciders = 10;
type Decision = Pick<ReachDecider, 'verdict' | 'object' | 'field' | 'message'>;
/** By pair of classes. */
export type KnownDecisions = Map<string, Decision>;

/** Answers a question in steps, so that it may be done in slices of time. */
export function* reachSteps(
  view: ClusterView,
  question: ReachQuestion,
): Generator<undefined, Reach, undefined> {
  const { namespace, protocol } = question;
  const { rows, columns, total } = yield* reachTableSteps(view, question);
  const known: KnownDecisions = new Map();
  const cells: (readonly ReachCell[])[] = [];
  for (const row of rows) cells.push(yield* reachRowSteps(view, protocol, row, columns, known));
  return {
    ...{ namespace, protocol, cells, total },
    sources: rows.map(({ name, count }) => ({ name, count })),
    destinations: columns.map(({ name, count, port }) => ({
      ...{ name, count },
      ...(port === undefined ? {} : { port }),
    })),
  };
}

/** The cells of one row, in steps. @param known the decisions of the rows before, which these are added to. */
export function* reachRowSteps(
  view: ClusterView,
  protocol: Protocol,
  row: Row,
  columns: readonly Column[],
  known: KnownDecisions,
): Generator<undefined, readonly ReachCell[], undefined> {
  yield;
  const cells: ReachCell[] = [];
  for (const column of columns) cells.push(yield* cellOf(view, protocol, row, column, known));
  return cells;
}

function* cellOf(
  view: ClusterView,
  protocol: Protocol,
  row: Row,
  column: Column,
  known: KnownDecisions,
): Generator<undefined, ReachCell, undefined> {
  if (row.is !== 'own' && column.is !== 'own') return { verdict: 'unasked', deciders: [] };
  const deciders = new Map<string, ReachDecider>();
  const isOfSelves = row.count === 1 && column.count === 1;
  for (const sources of row.groups[column.is]) {
    for (const target of column.targets[row.is]) {
      for (const { from, to, kind } of pairsOf(sources, target, isOfSelves)) {
        const [source, destination] =
          kind === 'translated' ? [from.key, to.key] : [from.class[column.is], to.class[row.is]];
        const key = `${target.port} ${kind} ${row.is} ${source} ${column.is} ${destination}`;
        let decision = known.get(key);
        if (decision === undefined) {
          const { port } = target;
          yield* nodePlanSteps(view, from.source, to);
          decision = decisionOf(tracePath(view, from.source, { address: to.address, protocol, port }));
          known.set(key, decision);
          yield;
        }
        const id = JSON.stringify(decision);
        if (deciders.has(id)) continue;
        deciders.set(id, { ...decision, from: from.name, to: `${to.name}:${target.port}` });
      }
    }
  }
  const all = [...deciders.values()];
  return { verdict: verdictOf(all), deciders: all.slice(0, mostDeciders) };
}

interface Pair {
  readonly from: SourceEnd;
  readonly to: DestinationEnd;
  /** Of two pairs of the same classes, those of the same kind are decided in the same way. */
  readonly kind: 'translated' | 'near' | 'far' | 'other' | 'self';
}

/**
 * Pairs that stand for all of a row's class and a target. A Pod always reaches itself: it is asked only where there is no
 * other one.
 *
 * @param isOfSelves of one Pod to one.
 */
function pairsOf(sources: Sources, { ends, isTranslated }: Target, isOfSelves: boolean): readonly Pair[] {
  const [first] = sources;
  const [end] = ends;
  if (first === undefined || end === undefined) return [];
  if (end.onlyFor !== undefined && end.onlyFor !== first.family) return [];
  const isAsked = (from: SourceEnd, to: DestinationEnd): boolean => isOfSelves || from.key !== to.key;
  if (isTranslated) {
    return sources
      .filter((from) => isAsked(from, end))
      .map((from) => ({ from, to: end, kind: 'translated' }));
  }
  if (first.isOfNode) {
    const byNode = Map.groupBy(ends, ({ node }) => node);
    const near = firstPair('near', sources, (from) =>
      (byNode.get(from.node) ?? []).find((to) => isAsked(from, to)),
    );
    const far = firstPair('far', sources, ({ node }) => ends.find((to) => to.node !== node));
    return [...near, ...far];
  }
  const other = firstPair('other', sources, ({ key }) => ends.find((to) => to.key !== key));
  return other.length > 0 || !isOfSelves ? other : [{ from: first, to: end, kind: 'self' }];
}

/** The first source for which there is a destination, with that; none. */
function firstPair(
  kind: Pair['kind'],
  sources: Sources,
  destinationOf: (from: SourceEnd) => DestinationEnd | undefined,
): readonly Pair[] {
  for (const from of sources) {
    const to = destinationOf(from);
    if (to !== undefined) return [{ from, to, kind }];
  }
  return [];
}

const allowing = ['ingress NetworkPolicy', 'egress NetworkPolicy', 'EgressFirewall'] as const;

function decisionOf({ reachable, stages, endpoints }: Trace): Decision {
  const all = [...stages, ...endpoints.flatMap((endpoint) => endpoint.stages)];
  if (reachable === true) {
    const by = allowing.flatMap(
      (name) => all.find(({ stage, verdict }) => stage === name && verdict === 'allow') ?? [],
    );
    if (by[0] !== undefined) return decision('allowed', by[0]);
    const isPod = endpoints.some(({ object }) => object !== undefined);
    const side = isPod ? 'ingress NetworkPolicy' : 'egress NetworkPolicy';
    return decision(
      'open',
      all.find(({ stage }) => stage === side),
    );
  }
  const denies = all.find(({ verdict }) => verdict === 'deny');
  if (reachable === false) return decision('denied', denies);
  return decision('unknown', all.find(({ verdict }) => verdict === 'unknown') ?? denies);
}

function decision(verdict: Decision['verdict'], stage: Stage | undefined): Decision {
  const { object, field, message = '' } = stage ?? {};
  return {
    verdict,
    ...(object === undefined ? {} : { object }),
    ...(field === undefined ? {} : { field }),
    message,
  };
}

function verdictOf(deciders: readonly ReachDecider[]): ReachVerdict {
  if (deciders.length === 0) return 'unasked';
  const verdicts = new Set(deciders.map(({ verdict }) => verdict));
  const isReached = verdicts.has('open') || verdicts.has('allowed');
  if (isReached && verdicts.has('denied')) return 'differs';
  if (verdicts.has('unknown')) return 'unknown';
  if (verdicts.has('denied')) return 'denied';
  return verdicts.has('allowed') ? 'allowed' : 'open';
}
