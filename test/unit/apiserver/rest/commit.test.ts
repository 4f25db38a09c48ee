import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { Admission } from '../../../../src/apiserver/rest/admission.ts';
import { commit } from '../../../../src/apiserver/rest/commit.ts';
import { OpenWatches } from '../../../../src/apiserver/rest/watch/open-watches.ts';
import { ResourceTable } from '../../../../src/apiserver/rest/served-resource.ts';
import { type ServerCore, strategyContext } from '../../../../src/apiserver/rest/server-core.ts';
import { createMemoryStorage } from '../../../../src/apiserver/storage/multi-version.ts';
import { PreconditionError } from '../../../../src/apiserver/storage/storage.ts';
import type { Reservation } from '../../../../src/registry/generic/strategy.ts';
import { badRequest } from '../../../../src/objects/status.ts';

const side = { group: '', plural: 'sides', namespace: '', name: 'x' };

function newCore(): ServerCore {
  const storage = createMemoryStorage({
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 10, milliseconds: 1000 },
    clock: () => 0,
    onListenerError: (error) => {
      throw error;
    },
  });
  const log = pino({ enabled: false });
  return {
    storage,
    watches: new OpenWatches(log),
    firstRevision: 1,
    resources: new ResourceTable(),
    admission: new Admission([]),
    log,
    random: () => 0,
    now: () => 0,
    newUid: () => 'uid',
  };
}

function reservation(settled: string[]): Reservation {
  return {
    creates: [{ ...side, object: { metadata: { name: 'x' } }, nameTaken: () => badRequest('x is taken') }],
    deletes: [],
    commit: () => settled.push('commit'),
    rollback: () => settled.push('rollback'),
  };
}

const write = { key: 'core/mains//m', expect: 'absent', object: { metadata: { name: 'm' } } } as const;

describe('a write with a side object', () => {
  test('stores both, and settles the reservation once', async () => {
    const core = newCore();
    const settled: string[] = [];
    const stored = await commit(
      core,
      reservation(settled),
      { ...write, object: { metadata: {} } },
      strategyContext(core, false),
    );
    expect(stored?.key).toBe(write.key);
    expect(core.storage.get('core/sides//x')?.object.metadata.uid).toBe('uid');
    expect(settled).toEqual(['commit']);
  });

  test('fails in the words of the reservation when the side object was stored first', async () => {
    const core = newCore();
    const settled: string[] = [];
    await core.storage.commit([
      { key: 'core/sides//x', expect: 'absent', object: { metadata: { name: 'x' } } },
    ]);
    const done = commit(
      core,
      reservation(settled),
      { ...write, object: { metadata: {} } },
      strategyContext(core, false),
    );
    await expect(done).rejects.toThrow('x is taken');
    expect(settled).toEqual(['rollback']);
    expect(core.storage.get(write.key)).toBeUndefined();
  });

  test('leaves it to the caller when the object itself is there already', async () => {
    const core = newCore();
    const settled: string[] = [];
    await core.storage.commit([{ key: write.key, expect: 'absent', object: { metadata: { name: 'm' } } }]);
    const done = commit(
      core,
      reservation(settled),
      { ...write, object: { metadata: {} } },
      strategyContext(core, false),
    );
    await expect(done).rejects.toThrow(PreconditionError);
    expect(settled).toEqual(['rollback']);
    expect(core.storage.get('core/sides//x')).toBeUndefined();
  });
});
