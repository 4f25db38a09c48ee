import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plain } from '../../../src/objects/plain.ts';
import { anyCharacter } from '../../support/any-character.ts';

describe('plain', () => {
  it('leaves nothing that a terminal would obey', () => {
    const hostile = fc.string({
      unit: fc.oneof(
        fc.constantFrom('\u001b[2J', '\u001b]0;owned\u0007', '\u009b31m', '\r', '\n', '\u202e', '\u2028'),
        fc.string({ unit: anyCharacter, minLength: 1, maxLength: 1 }),
      ),
    });
    fc.assert(
      fc.property(hostile, (text) => {
        const shown = plain(text);
        const obeyed = Array.from(shown).filter((character) => {
          const code = character.codePointAt(0) ?? 0;
          return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x202e || code === 0x2028;
        });
        expect(obeyed).toEqual([]);
      }),
    );
    expect(plain('\u001b[31mred\u001b[0m\nnext')).toBe('red?next');
    expect(plain('Grüße, 世界')).toBe('Grüße, 世界');
  });
});
