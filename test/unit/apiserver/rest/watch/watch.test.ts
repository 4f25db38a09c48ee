import { expect, test } from 'vitest';
import type { VersionConversion } from '../../../../../src/apiserver/rest/served-resource.ts';
import { convertEvents } from '../../../../../src/apiserver/rest/watch/watch.ts';
import type { StorageEvent, StoredObject } from '../../../../../src/apiserver/storage/storage.ts';

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

test.each([
  [true, [2, 1, 4, 3], ['converted k/2 after converted k/1', 'converted k/4 after converted k/3']],
  [false, [2, 4], ['converted k/2 after k/1', 'converted k/4 after k/3']],
])('events are asked about together, with the versions before: %s', async (withPrevious, asked, shown) => {
  const questions: number[][] = [];
  const conversion: Pick<VersionConversion, 'read'> = {
    read: (versions) => {
      questions.push(versions.map(({ revision }) => revision));
      return Promise.resolve(versions.map((one) => ({ ...one, key: `converted ${one.key}` })));
    },
  };
  const events = await convertEvents(conversion, [event(2), event(4)], withPrevious);
  expect(questions).toEqual([asked]);
  expect(events.map(({ current, previous }) => `${current.key} after ${previous?.key ?? 'nothing'}`)).toEqual(
    shown,
  );
});
