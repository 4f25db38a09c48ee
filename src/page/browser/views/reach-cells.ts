import type { Outcome } from '../../../objects/flows/outcomes.ts';
import type { FlowGroupRow } from '../../../view/rows/rows.ts';
import type { ReachAnswer, ReachPlanAnswer } from '../../messages.ts';

/** Who reaches whom, from one row to one column. */
export type Cell = ReachAnswer['cells'][number][number];
type Change = ReachPlanAnswer['changes'][number];

/** A cell, and what a plan makes of it. */
export interface Shown {
  /** Of the selection: `deployment/shop/cart deployment/shop/catalog:8080`. */
  readonly key: string;
  readonly source: string;
  readonly destination: string;
  readonly cell: Cell;
  /** Absent: nothing that is planned changes its verdict. */
  readonly change?: Change;
  /** Packets that were dropped and connections that were refused in the last five minutes; absent: none. */
  readonly tried?: number;
  /** Connections of the last five minutes; absent: none. */
  readonly used?: number;
}

/** Which cells are shown, by flows. */
export const filters = {
  tried: 'tried in vain',
  unused: 'allowed and not used',
} as const;

/** Whether a cell is one that a filter asks for. */
export function isAskedFor(filter: string | undefined, { cell, tried, used }: Shown): boolean {
  if (filter === 'tried') return tried !== undefined;
  // What the destination itself refused had been allowed.
  return filter !== 'unused' || (cell.verdict === 'allowed' && used === undefined && tried === undefined);
}

/** A column's name as `servicenet trace` takes it. */
export function columnName({ name, port }: ReachAnswer['destinations'][number]): string {
  return port === undefined ? name : `${name}:${port}`;
}

/** All cells, by rows. @param flows what came of connections of the last five minutes. */
export function shownCells(
  answer: ReachAnswer,
  changes: readonly Change[],
  flows: readonly FlowGroupRow[],
): readonly Shown[] {
  const marks = marksOf(flows.filter(({ protocol }) => protocol === answer.protocol));
  const planned = new Map(
    changes
      .filter(({ before, after }) => before.verdict !== after.verdict)
      .map((change) => [`${change.source} ${change.destination}`, change]),
  );
  return answer.sources.flatMap(({ name: source }, row) =>
    answer.destinations.flatMap((column, index): Shown[] => {
      const destination = columnName(column);
      const cell = answer.cells[row]?.[index];
      const key = `${source} ${destination}`;
      const change = planned.get(key);
      if (cell === undefined) return [];
      // What is applied is no plan any more.
      const isDone = change === undefined || change.after.verdict === cell.verdict;
      return [{ key, source, destination, cell, ...(isDone ? {} : { change }), ...marks.get(key) }];
    }),
  );
}

/** What an outcome says of a cell; `opened` is no answer, and a name that is not there leads to none. */
const markOf: Readonly<Record<Outcome, 'tried' | 'used' | undefined>> = {
  connected: 'used',
  ...{ refused: 'tried', dropped: 'tried' },
  ...{ opened: undefined, NXDOMAIN: undefined },
};

/** What was tried and used, by the keys of cells. */
function marksOf(flows: readonly FlowGroupRow[]): ReadonlyMap<string, Pick<Shown, 'tried' | 'used'>> {
  const marks = new Map<string, { tried?: number; used?: number }>();
  for (const { cells, outcome, count } of flows) {
    const name = markOf[outcome];
    if (cells === undefined || name === undefined) continue;
    for (const from of cells.from) {
      for (const to of cells.to) {
        const key = `${from} ${to}`;
        const mark = marks.get(key) ?? {};
        mark[name] = (mark[name] ?? 0) + count;
        marks.set(key, mark);
      }
    }
  }
  return marks;
}
