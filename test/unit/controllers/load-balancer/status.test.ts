import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  assignedText,
  sharingKeyText,
  readAssigned,
  readSharingKey,
  type AssignedText,
} from '../../../../src/controllers/load-balancer/status.ts';
import { anyCharacter } from '../../../support/any-character.ts';

const origin = fc.record({
  pool: fc.constantFrom('home', 'a.b-c', '0'),
  shrinkPolicy: fc.constantFrom('Retain' as const, 'Reassign' as const),
});
const text: fc.Arbitrary<AssignedText> = fc.record({
  address: fc.constantFrom('192.0.2.1', '2001:db8::1'),
  origin,
  key: fc.string({ unit: anyCharacter, maxLength: 100 }).map(sharingKeyText),
  kept: fc.boolean(),
});

test('readKey reads keys of up to 64 characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 64 }), (key) => {
      expect(readSharingKey(sharingKeyText(key))).toBe(key.slice(0, 64));
    }),
  );
});

test('readKey returns text of other clients as it is', () => {
  const [text] = readAssigned(String.raw`192.0.2.1 from pool p with sharing key "\q"`);
  expect(text?.key).toBe(String.raw`"\q"`);
  expect(readSharingKey(text?.key ?? '')).toBe(String.raw`"\q"`);
});

describe('readAssigned', () => {
  test('reads the texts of assignedText up to the first other text', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 2 }), fc.string(), (texts, refusal) => {
        const message = texts.map(assignedText).join(', ');
        expect(readAssigned(message)).toEqual(texts);
        expect(readAssigned(`${message}; ${refusal}`)).toEqual(texts);
      }),
    );
  });

  test.each([
    ['a refusal', '192.0.2.1 is held by n/s'],
    ['a wish', 'the Service asks for "192.0.2.1 from pool p", which is not an address'],
    ['an address that stands alone', '192.0.2.1'],
    ['no address', '192.0.2.999 from pool p'],
    ['nothing', ''],
  ])('finds no address in %s', (_what, message) => {
    expect(readAssigned(message)).toEqual([]);
  });

  test('reads an address that no pool assigned', () => {
    const kept = { address: '192.0.2.1', origin: undefined, key: '', kept: true };
    expect(readAssigned(assignedText(kept))).toEqual([kept]);
  });
});
