import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MultiVersionStore } from '../../../../src/apiserver/storage/multi-version.ts';
import { PreconditionError, type Write } from '../../../../src/apiserver/storage/storage.ts';
import { Versions } from '../../../../src/apiserver/storage/version.ts';

const prefix = 'core/configmaps/default/';

/** A store that forgets the past at once, and what its versions hold. */
function forgetfulStore() {
  const encode = (object: object): string => JSON.stringify(object);
  const versions = new Versions(encode);
  const store = new MultiVersionStore(
    {
      encode,
      retain: { revisions: 0, milliseconds: 1000 },
      clock: () => 0,
      onListenerError: (error) => {
        throw error;
      },
    },
    undefined,
    versions,
  );
  return { store, versions };
}

describe('the texts of a store', () => {
  const write = fc.record({
    name: fc.nat(9),
    padding: fc.nat(2000),
    expect: fc.constantFrom('absent' as const, 'any' as const, 7),
    deletes: fc.boolean(),
  });

  it('are those of what is stored and no others: not of the past, of refused writes, of writes taken back', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.array(write, { maxLength: 3 }), fc.boolean())), (commits) => {
        const { store, versions } = forgetfulStore();
        for (const [writes, isTakenBack] of commits) {
          try {
            const staged = store.stage(writes.map(toWrite));
            if (isTakenBack) store.rollback([staged]);
            else store.publish(staged);
          } catch (error) {
            if (!(error instanceof PreconditionError)) throw error;
          }
        }
        const { items } = store.list(prefix);
        expect(versions.texts.count).toBe(items.length);
        for (const item of items) expect(JSON.parse(item.text())).toEqual(item.object);
      }),
    );
  });

  function toWrite({ name, padding, expect, deletes }: WriteShape): Write {
    const object = { metadata: { name: `c${name}`, annotations: { padding: 'ä'.repeat(padding) } } };
    return { key: `${prefix}c${name}`, expect, object: deletes ? undefined : object };
  }
});

interface WriteShape {
  readonly name: number;
  readonly padding: number;
  readonly expect: 'absent' | 'any' | number;
  readonly deletes: boolean;
}
