import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ForwardingPlanner, type ServiceInput } from '../../../../src/network/forwarding/planner.ts';
import type { ForwardingPlan } from '../../../../src/network/forwarding/forwarding-plan.ts';
import { isRecord } from '../../../../src/objects/json.ts';
import { elementText, type ElementChange } from '../../../../src/node/nftables/elements.ts';
import { type Element, valueText } from '../../../../src/node/nftables/elements.ts';
import { ListedTable } from '../../../../src/node/nftables/listed-table.ts';
import { ProgrammedServices } from '../../../../src/node/nftables/programmed.ts';
import { Transactions } from '../../../../src/node/nftables/transactions.ts';
import { endpointSlice } from '../../../network/support/objects.ts';
import { input, many, node, options, pods, state } from './samples.ts';

/** What nft does with changes: it refuses to add what is there with another value, and to delete what is not. */
class Table {
  readonly #elements = new Map<string, Element>();

  get elements(): readonly Element[] {
    return [...this.#elements.values()];
  }

  apply(changes: readonly ElementChange[]): void {
    for (const { kind, element } of changes) {
      const text = elementText(element);
      const present = this.#elements.get(text);
      if (kind === 'add') expect(present?.value ?? element.value, text).toEqual(element.value);
      else expect(present, `${kind} ${text}`).toBeDefined();
      if (kind === 'delete') this.#elements.delete(text);
      else this.#elements.set(text, element);
    }
  }
}

/** What an agent changes that starts with a table. */
function restart(plan: ForwardingPlan, elements: readonly Element[]): readonly ElementChange[] {
  const listed = new ListedTable(plan, 'IPv4');
  for (const element of elements) listed.add(element);
  const programmed = new ProgrammedServices('IPv4');
  const changes: ElementChange[] = [];
  for (const step of programmed.adopt(plan, listed, [])) {
    changes.push(...step.changes);
    programmed.commit(step);
  }
  return changes;
}

describe('what is known of a table', () => {
  it('leads from each plan to the next by changes that nft accepts, and a restart then finds nothing to do', () => {
    fc.assert(
      fc.property(fc.array(fc.array(state, { maxLength: 3 }), { minLength: 1, maxLength: 6 }), (steps) => {
        const planner = new ForwardingPlanner(node, options);
        const programmed = new ProgrammedServices('IPv4');
        const table = new Table();
        for (const states of steps) {
          const touched = planner.apply(states.map(input)).map(({ key }) => key);
          const step = programmed.next(planner.plan, touched);
          table.apply(step.changes);
          programmed.commit(step);

          expect(restart(planner.plan, table.elements)).toEqual([]);
        }
      }),
    );
  });

  it('mends a table whatever is missing or wrong in it', () => {
    fc.assert(
      fc.property(
        fc.array(state, { minLength: 1, maxLength: 3 }),
        fc.infiniteStream(fc.boolean()),
        (states, gone) => {
          const planner = new ForwardingPlanner(node, options);
          planner.apply(states.map(input));
          const full = new Table();
          full.apply(new ProgrammedServices('IPv4').next(planner.plan).changes);
          const damaged = new Table();
          damaged.apply(
            full.elements.flatMap((element) =>
              gone.next().value === true ? [] : [{ kind: 'add', element }],
            ),
          );
          damaged.apply(restart(planner.plan, damaged.elements));
          const left = damaged.elements;
          expect(restart(planner.plan, left)).toEqual([]);
          expect(left.length).toBe(full.elements.length);
        },
      ),
    );
  });
});

describe('transactions', () => {
  it('are at most 128 KiB each, and after each of them every chain finds all of its endpoints', () => {
    const planner = new ForwardingPlanner(node, options);
    const programmed = new ProgrammedServices('IPv4');
    const table = new Map<string, string>();
    const sizes: number[] = [];
    const bring = (...states: readonly ServiceInput[]): void => {
      planner.apply(states);
      const step = programmed.next(planner.plan);
      for (const text of transactions(step.changes)) {
        sizes.push(text.length);
        apply(table, text);
        checkPicks(table);
      }
      programmed.commit(step);
    };
    const some = Array.from({ length: 600 }, (_, number) => many(number, 10, 0));
    bring(...some);
    bring(many(0, 5000, 0), many(1, 9, 3));
    bring(many(0, 4000, 100), many(1, 30, 0));
    bring(many(0, 6000, 0));
    bring({ ...many(0, 0, 0), service: undefined });
    expect(table.has('service-ips 10.96.0.1 6 80')).toBe(false);
    bring(many(0, 1, 0), many(1, 0, 0));
    expect(sizes.filter((size) => size > 2 ** 17)).toEqual([]);
    expect(table.get('service-ips 10.96.0.1 6 80')).toBe('pick-cluster-1-masquerade-all-but-pods');
  });

  it('are one for a change of one Service', () => {
    const planner = new ForwardingPlanner(node, options);
    const programmed = new ProgrammedServices('IPv4');
    planner.apply([many(0, 10, 0), many(1, 10, 0)]);
    programmed.commit(programmed.next(planner.plan));
    planner.apply([
      { ...many(0, 10, 0), slices: [endpointSlice('IPv4', pods(10, 0).slice(1), 8080, 'web-0')] },
    ]);
    const { changes } = programmed.next(planner.plan);
    expect(
      changes
        .map(({ kind, element }) => `${kind} ${elementText(element)} ${valueText(element.value)}`)
        .sort(),
    ).toEqual([
      'delete cluster-endpoints 10.96.0.1 tcp 80 9 10.200.0.9 8080',
      'replace cluster-endpoints 10.96.0.1 tcp 80 0 10.200.0.9 8080',
      'replace service-ips 10.96.0.1 tcp 80 pick-cluster-9-masquerade-all-but-pods',
    ]);
    expect(transactions(changes)).toHaveLength(1);
  });
});

function transactions(changes: readonly ElementChange[]): readonly string[] {
  const all = new Transactions('ip');
  return [...all.push(changes), ...all.flush()];
}

/** What a transaction does to a table of keys and values, each as text. */
function apply(table: Map<string, string>, text: string): void {
  const parsed: unknown = JSON.parse(text);
  const commands: unknown = isRecord(parsed) ? parsed['nftables'] : undefined;
  for (const command of Array.isArray(commands) ? commands : []) {
    for (const verb of ['delete', 'add']) {
      const inner: unknown = isRecord(command) ? command[verb] : undefined;
      const set: unknown = isRecord(inner) ? inner['element'] : undefined;
      if (!isRecord(set) || !Array.isArray(set['elem'])) continue;
      for (const element of set['elem']) {
        const pair: unknown[] = verb === 'add' && Array.isArray(element) ? element : [element];
        const key = `${String(set['name'])} ${words(pair[0])}`;
        expect(table.has(key), `${verb} ${key}`).toBe(verb === 'delete');
        if (verb === 'delete') table.delete(key);
        else table.set(key, words(pair[1]));
      }
    }
  }
}

function words(json: unknown): string {
  if (!isRecord(json)) return String(json);
  const { concat, goto } = json;
  if (Array.isArray(concat)) return concat.map(String).join(' ');
  return isRecord(goto) ? String(goto['target']) : JSON.stringify(json);
}

function checkPicks(table: ReadonlyMap<string, string>): void {
  for (const [key, target] of table) {
    const endpoints = /^pick-cluster-(\d+)/.exec(target)?.[1];
    if (!key.startsWith('service-ips ') || endpoints === undefined) continue;
    const destination = key.slice('service-ips '.length);
    for (let slot = 0; slot < Number(endpoints); slot++) {
      if (!table.has(`cluster-endpoints ${destination} ${slot}`))
        throw new Error(`${key} → ${target}: no slot ${slot}`);
    }
  }
}
