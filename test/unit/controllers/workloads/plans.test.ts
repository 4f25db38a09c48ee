import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { budgetEvents } from '../../../../src/controllers/workloads/event-budget.ts';
import { planClaim } from '../../../../src/controllers/workloads/ownership.ts';
import {
  outdatedRevisions,
  hashOfData,
  planHistory,
  templateOf,
} from '../../../../src/controllers/workloads/plan-history.ts';
import { scaledValue } from '../../../../src/controllers/workloads/plan-template.ts';
import { hashTemplate, sameTemplate } from '../../../../src/controllers/workloads/plan-template.ts';
import { compileLabelSelector } from '../../../../src/objects/selectors/labels.ts';
import type { ControllerRevision } from '../../../../src/objects/types/apps.generated.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { deployment, pod } from './samples.ts';

describe('planClaim', () => {
  const owner = deployment();
  const other = { ...deployment(), metadata: { name: 'other', uid: 'other' } };
  const selector = compileLabelSelector(owner.spec.selector);

  it('adopts orphans, releases what it no longer selects, and leaves objects of other owners alone', () => {
    const owned = pod('owned', { owner });
    const renamed = pod('renamed', { owner, labels: { app: 'debug' } });
    const free = pod('free');
    const strangers = [
      pod('unselected', { labels: { app: 'x' } }),
      pod('theirs', { owner: other }),
      pod('leaving', { leaving: true }),
    ];
    expect(planClaim(owner, selector, [owned, renamed, free, ...strangers])).toEqual({
      owned: [owned],
      adopt: [free],
      release: [renamed],
    });
  });

  it('changes nothing for an owner that is being deleted', () => {
    const leaving = { ...owner, metadata: { ...owner.metadata, deletionTimestamp: 'now' } };
    const renamed = pod('renamed', { owner, labels: { app: 'debug' } });
    expect(planClaim(leaving, selector, [renamed, pod('free')])).toEqual({
      owned: [],
      adopt: [],
      release: [],
    });
  });
});

describe('scaledValue', () => {
  it.each([
    [3, 10, 'up', 3],
    ['25%', 10, 'up', 3],
    ['25%', 10, 'down', 2],
    ['0%', 10, 'up', 0],
    ['100%', 7, 'down', 7],
    ['150%', 2, 'up', 3],
    ['x', 10, 'up', 0],
    [undefined, 10, 'up', 9],
  ] as const)('%s of %i, rounded %s', (value, total, round, expected) => {
    expect(scaledValue(value, total, round, 9)).toBe(expected);
  });
});

describe('hashTemplate', () => {
  it('depends on what the template says, not on the order in which it says it', () => {
    const keys = fc.array(fc.constantFrom<string>('a', 'b', 'c', 'app'), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c', 'app'), fc.string()),
        keys,
        (labels, order) => {
          const sorted = Object.fromEntries(
            Object.entries(labels).sort(
              ([a], [b]) => order.indexOf(a) - order.indexOf(b) || (a < b ? -1 : 1),
            ),
          );
          const template = { metadata: { labels } };
          const again = { metadata: { labels: sorted } };
          expect(hashTemplate(again, undefined)).toBe(hashTemplate(template, undefined));
          expect(hashTemplate(template, undefined)).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]{1,10}$/);
        },
      ),
    );
  });

  it('changes with a collision', () => {
    const template = { metadata: { labels: { app: 'web' } } };
    const hashes = [undefined, 0, 1, 2].map((count) => hashTemplate(template, count));
    expect(new Set(hashes).size).toBe(4);
  });

  it('is no part of what makes two templates the same', () => {
    const template = { metadata: { labels: { app: 'web' } } };
    const hashed = { metadata: { labels: { app: 'web', 'pod-template-hash': 'x' } } };
    expect(sameTemplate(template, hashed)).toBe(true);
    expect(sameTemplate(template, { metadata: { labels: { app: 'api' } } })).toBe(false);
  });
});

describe('planHistory', () => {
  const owner = deployment();
  const template = (image: string): object => deployment({}, image).spec.template;
  const stored = (
    image: string,
    revision: number,
    present: readonly ControllerRevision[] = [],
  ): ControllerRevision => {
    const { create } = planHistory(owner, template(image), present, hashOfData, undefined);
    if (create === undefined) throw new Error('the template is a revision already');
    return { ...create, data: create.data, revision };
  };

  it('names a revision by the hash of what it holds, as kube-controller-manager does', () => {
    const metadata = { labels: { app: 'db' } };
    const of = { spec: { containers: [{ name: 'main', image: 'i<1>' }] }, metadata };
    const { create } = planHistory(owner, of, [], hashOfData, 0);
    // By Go's hash/fnv of the text with \u003c and \u003e, and the number of collisions behind it.
    expect(create?.metadata.name).toBe('web-6648969fd5');
    expect(create?.metadata.labels).toEqual({ app: 'db', 'controller.kubernetes.io/hash': '6648969fd5' });
    expect(planHistory(owner, of, [], hashOfData, 1).create?.metadata.name).toBe('web-6648969fd4');
  });

  it('writes the template as Go writes a map, members in order', () => {
    const { create } = planHistory(owner, template('i:1'), [], hashOfData, undefined);
    expect(JSON.stringify(create?.data)).toMatch(/^{"spec":{"template":{"\$patch":"replace","metadata":/);
  });

  it('makes a revision of a new template, finds it again, and renumbers an old one', () => {
    const first = stored('i:1', 1);
    expect(templateOf(first)).toEqual(template('i:1'));
    expect(planHistory(owner, template('i:1'), [first], hashOfData, undefined)).toEqual({
      update: first,
      create: undefined,
      renumber: undefined,
    });
    const second = stored('i:2', 2, [first]);
    const { create } = planHistory(owner, template('i:3'), [second, first], hashOfData, undefined);
    expect(create?.revision).toBe(3);
    expect(planHistory(owner, template('i:1'), [second, first], hashOfData, undefined)).toMatchObject({
      update: first,
      renumber: 3,
    });
  });

  it('drops the oldest that no Pod has', () => {
    const all = [1, 2, 3, 4].map((number) => stored(`i:${number}`, number));
    const isLive = ({ revision }: ControllerRevision): boolean => revision === 1 || revision === 4;
    expect(outdatedRevisions(all, isLive, 1).map(({ revision }) => revision)).toEqual([2]);
    expect(outdatedRevisions(all, isLive, 2)).toEqual([]);
  });
});

describe('budgetEvents', () => {
  it('lets a burst through, then so many a second, and every warning', async () => {
    const clock = new FakeClock();
    const sent: string[] = [];
    const recorder = budgetEvents({ event: (_about, type) => void sent.push(type) }, clock);
    for (let i = 0; i < 500; i++) recorder.event(pod('p'), 'Normal', 'Started', 'x');
    expect(sent).toHaveLength(50);
    recorder.event(pod('p'), 'Warning', 'Failed', 'x');
    expect(sent).toHaveLength(51);
    await clock.advance(2000);
    for (let i = 0; i < 500; i++) recorder.event(pod('p'), 'Normal', 'Started', 'x');
    expect(sent).toHaveLength(61);
  });
});
