import { describe, expect, test } from 'vitest';
import type { VersionConversion } from '../../../../src/apiserver/rest/served-resource.ts';
import { ConvertedEvents } from '../../../../src/apiserver/rest/watch-conversion.ts';
import type { StorageEvent, StoredObject } from '../../../../src/apiserver/storage/storage.ts';
import { until } from '../../../support/until.ts';

function stored(revision: number): StoredObject {
  return {
    ...{ key: `k/${revision}`, revision, byteLength: 10, isDecorated: true },
    object: { metadata: { name: String(revision) } },
    text: () => '{}',
    writeTo: (_target, at) => at,
  };
}

function event(revision: number): StorageEvent {
  return { type: 'MODIFIED', revision, current: stored(revision), previous: stored(revision - 1) };
}

/** Events whose questions are answered when a test says so. */
function waiting(withPrevious: boolean): {
  events: ConvertedEvents;
  asked: number[][];
  taken: string[];
  failures: unknown[];
  answer: (error?: Error) => void;
} {
  const asked: number[][] = [];
  const taken: string[] = [];
  const failures: unknown[] = [];
  const answers: ((error?: Error) => void)[] = [];
  const conversion: Pick<VersionConversion, 'read'> = {
    read: async (versions) => {
      asked.push(versions.map(({ revision }) => revision));
      return new Promise((resolve, reject) => {
        answers.push((error) => {
          if (error === undefined) resolve(versions.map((one) => ({ ...one, key: `converted ${one.key}` })));
          else reject(error);
        });
      });
    },
  };
  const events = new ConvertedEvents(conversion, withPrevious, {
    take: ({ current, previous }) => taken.push(`${current.key} after ${previous?.key ?? 'nothing'}`),
    fail: (error) => failures.push(error),
  });
  return { events, asked, taken, failures, answer: (error) => answers.shift()?.(error) };
}

describe('ConvertedEvents', () => {
  test('asks about what has come meanwhile together, and keeps the order', async () => {
    const { events, asked, taken, answer } = waiting(true);
    expect(events.isIdle).toBe(true);
    for (const revision of [2, 4, 6]) events.push(event(revision));
    expect([events.isIdle, events.bytes]).toEqual([false, 30]);
    expect(asked).toEqual([[2, 1]]);
    answer();
    await until(() => asked.length === 2);
    expect(taken).toEqual(['converted k/2 after converted k/1']);
    expect(asked[1]).toEqual([4, 3, 6, 5]);
    expect(events.bytes).toBe(20);
    answer();
    await events.settled();
    expect(taken.slice(1)).toEqual([
      'converted k/4 after converted k/3',
      'converted k/6 after converted k/5',
    ]);
    expect([events.isIdle, events.bytes]).toEqual([true, 0]);
  });

  test('leaves the versions before alone where nobody selects', async () => {
    const { events, asked, taken, answer } = waiting(false);
    events.push(event(2));
    expect(asked).toEqual([[2]]);
    answer();
    await events.settled();
    expect(taken).toEqual(['converted k/2 after k/1']);
  });

  test('hands on nothing after what it cannot have, or when it is stopped', async () => {
    const failing = waiting(false);
    failing.events.push(event(2));
    failing.events.push(event(3));
    failing.answer(new Error('no'));
    await failing.events.settled();
    failing.events.push(event(4));
    expect([failing.taken, failing.failures, failing.asked]).toEqual([[], [new Error('no')], [[2]]]);
    const stopped = waiting(false);
    stopped.events.push(event(2));
    stopped.events.stop();
    stopped.answer(new Error('no'));
    await stopped.events.settled();
    expect([stopped.taken, stopped.failures]).toEqual([[], []]);
  });
});
