import { expect, test } from 'vitest';
import { expireEvents } from '../../../src/apiserver/periodic.ts';
import { createMemoryStorage } from '../../../src/apiserver/storage/multi-version.ts';
import { listPrefix, objectKey } from '../../../src/apiserver/storage/storage.ts';
import type { ManagedFieldsEntry } from '../../../src/objects/meta.ts';

const storage = createMemoryStorage({
  encode: (object) => JSON.stringify(object),
  retain: { revisions: 10, milliseconds: 1000 },
  clock: () => 0,
  onListenerError: (error) => {
    throw error;
  },
});

test('Events go an hour after they were last written, whatever times are in them', async () => {
  const event = (name: string, creationTimestamp: string, more: object, managed?: ManagedFieldsEntry) => ({
    ...{ apiVersion: 'v1', kind: 'Event', ...more },
    metadata: {
      ...{ name, namespace: 'default', creationTimestamp },
      ...(managed === undefined ? {} : { managedFields: [managed] }),
    },
  });
  const [before, after] = ['2026-01-01T08:59:59Z', '2026-01-01T09:00:01Z'];
  const events = [
    event('old', before, { lastTimestamp: '2026-01-01T10:00:00Z' }),
    event('counted-once', before, {}, { time: before }),
    event('counted-again', before, {}, { time: after }),
    event('of-the-past', after, { lastTimestamp: '2025-01-01T00:00:00Z' }),
    event('without-times', after, {}),
  ];
  await storage.commit(
    events.map((object) => ({
      key: objectKey('', 'events', 'default', object.metadata.name),
      expect: 'absent',
      object,
    })),
  );
  await expireEvents({ storage, now: () => Date.parse('2026-01-01T10:00:00Z') });
  const left = storage.list(listPrefix('', 'events')).items.map(({ object }) => object.metadata.name);
  expect(left.toSorted()).toEqual(['counted-again', 'of-the-past', 'without-times']);
});
