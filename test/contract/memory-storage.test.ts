import fc from 'fast-check';
import { describe, it } from 'vitest';
import { createMemoryStorage } from '../../src/apiserver/storage/multi-version.ts';
import { runs } from '../support/runs.ts';
import { checkHistory, histories } from './storage-model.ts';
import { describeStorage } from './storage.contract.ts';

const encode = (object: object) => JSON.stringify(object);

describeStorage('memory', (options) => Promise.resolve(createMemoryStorage({ ...options, encode })));

describe('memory: random histories', () => {
  it('answers like an array of all versions', async () => {
    await fc.assert(
      fc.asyncProperty(histories, fc.integer({ min: 1, max: 200 }), async (history, revisions) => {
        const storage = createMemoryStorage({
          encode,
          retain: { revisions, milliseconds: 1000 },
          clock: () => 0,
          onListenerError: (error) => {
            throw error;
          },
        });
        await checkHistory(storage, history);
      }),
      { numRuns: runs(50, 300) },
    );
  });
});
