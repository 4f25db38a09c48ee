import { worstFirst } from '../../objects/flows/outcomes.ts';
import { maxOf } from '../../objects/lists.ts';
import { cellsOf, type Flow, type FlowCells, type FlowWords, flowWords, workloadText } from './flow.ts';
import { setYoungest } from './oldest.ts';

/** Flows of one workload to one place with one outcome. */
export interface FlowGroup extends FlowWords {
  /** Of this group alone. */
  readonly key: string;
  /** Connections of the last five minutes; of what was denied, packets. */
  readonly count: number;
  readonly perSecond: number;
  /** Of the five minutes, the oldest first: the number of each five seconds. */
  readonly history: readonly number[];
  /** Absent: it is of no cell of `trace --matrix`. */
  readonly cells?: FlowCells;
}

/** Groups of flows: the worst first, then the busiest. */
export interface FlowGroups {
  readonly groups: readonly FlowGroup[];
  /** Those that are left out among them. */
  readonly total: number;
}

/** Groups in an answer, at most. */
export const mostGroups = 200;

const columnMs = 5000;
const columns = 60;
/** What is kept: flows whose outcome may change yet, and groups. */
const maxFlows = 10_000;
const maxGroups = 5000;

/** A group as it is counted. */
interface Counted {
  readonly key: string;
  /** The last one. */
  flow: Flow;
  readonly history: History;
}

/** A flow, the group that it is counted in, and of when. */
interface CountedFlow {
  readonly flow: Flow;
  readonly key: string;
  readonly timeMs: number;
}

/** Groups flows as they arrive: by source workload, Service, destination, outcome and decider. */
export class FlowGrouping {
  readonly #groups = new Map<string, Counted>();
  /** One that is told again may be of another group, or have more packets. */
  readonly #flows = new Map<number, CountedFlow>();

  /** A flow is told, or told again. */
  take(flow: Flow): void {
    const key = keyOf(flow);
    const before = this.#flows.get(flow.id);
    const isSame = before?.key === key;
    const timeMs = Date.parse(flow.time);
    setYoungest(this.#flows, flow.id, { flow, key, timeMs: isSame ? before.timeMs : timeMs }, maxFlows);
    if (before !== undefined && !isSame) this.#takeBack(before);
    const { packets } = flow;
    const more =
      packets === undefined ? (isSame ? 0 : 1) : Math.max(0, packets - (before?.flow.packets ?? 0));
    const group = this.#groupOf(key, flow);
    if (flow.time >= group.flow.time) group.flow = flow;
    group.history.add(timeMs, more);
  }

  /** What was told of the last five minutes. */
  groups(nowMs: number): FlowGroups {
    const present: { readonly group: Counted; readonly count: number }[] = [];
    for (const [key, group] of this.#groups) {
      const count = group.history.count(nowMs);
      if (count > 0) present.push({ group, count });
      else this.#groups.delete(key);
    }
    const rankOf = ({ group }: (typeof present)[number]): number => worstFirst.indexOf(group.flow.outcome);
    present.sort(
      (a, b) => rankOf(a) - rankOf(b) || b.count - a.count || (a.group.key < b.group.key ? -1 : 1),
    );
    return {
      groups: present.slice(0, mostGroups).map(({ group, count }) => told(group, count, nowMs)),
      total: present.length,
    };
  }

  #groupOf(key: string, flow: Flow): Counted {
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const group: Counted = { key, flow, history: new History() };
    setYoungest(this.#groups, key, group, maxGroups);
    return group;
  }

  /** One whose outcome is another now; packets that were denied stay what they were. */
  #takeBack({ key, flow, timeMs }: CountedFlow): void {
    if (flow.packets === undefined) this.#groups.get(key)?.history.add(timeMs, -1);
  }
}

function told({ key, flow, history }: Counted, count: number, nowMs: number): FlowGroup {
  const cells = cellsOf(flow);
  return {
    ...{ key, ...flowWords(flow, workloadText) },
    ...(cells === undefined ? {} : { cells }),
    ...{ count, perSecond: history.perSecond(nowMs), history: history.until(nowMs) },
  };
}

function keyOf(flow: Flow): string {
  const { from, service, to, protocol, outcomeText } = flowWords(flow, workloadText);
  const { object = '', field = '' } = flow.decidedBy ?? {};
  return [from, service, to, protocol, outcomeText, object, field].join(' ');
}

/** How many there were in each five seconds of five minutes. */
class History {
  readonly #counts: number[] = Array<number>(columns).fill(0);
  /** The number of the last column that anything was added to, since 1970. */
  #newest = 0;

  add(timeMs: number, count: number): void {
    const column = Math.floor(timeMs / columnMs);
    this.#moveTo(column);
    if (column <= this.#newest - columns) return;
    const index = column % columns;
    this.#counts[index] = Math.max(0, (this.#counts[index] ?? 0) + count);
  }

  count(nowMs: number): number {
    return this.until(nowMs).reduce((sum, each) => sum + each, 0);
  }

  /** Of the present column and the one before. */
  perSecond(nowMs: number): number {
    const [before = 0, present = 0] = this.until(nowMs).slice(-2);
    const seconds = (columnMs + (nowMs % columnMs)) / 1000;
    const rate = (before + present) / seconds;
    return rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate);
  }

  /** @returns the oldest first, the last is that of now. */
  until(nowMs: number): readonly number[] {
    const now = Math.max(this.#newest, Math.floor(nowMs / columnMs));
    return Array.from({ length: columns }, (_, index) => {
      const column = now - columns + 1 + index;
      const isThere = column <= this.#newest && column > this.#newest - columns;
      return isThere ? (this.#counts[column % columns] ?? 0) : 0;
    });
  }

  #moveTo(column: number): void {
    if (column - this.#newest >= columns) this.#counts.fill(0);
    else {
      for (let next = this.#newest + 1; next <= column; next++) this.#counts[next % columns] = 0;
    }
    this.#newest = Math.max(this.#newest, column);
  }
}

const bars = '▁▂▃▄▅▆▇█';

/** Signs of a history; a divisor of 60. */
const historyWidth = 10;

/** A history as signs, the highest of them the largest number: `▁▃ ▅`. */
export function historyText(history: readonly number[]): string {
  const each = Math.ceil(history.length / historyWidth);
  const sums = Array.from({ length: historyWidth }, (_, index) =>
    history.slice(index * each, (index + 1) * each).reduce((sum, count) => sum + count, 0),
  );
  const most = maxOf(sums);
  return sums
    .map((sum) => (sum === 0 ? ' ' : (bars[Math.ceil((sum / most) * bars.length) - 1] ?? ' ')))
    .join('');
}
