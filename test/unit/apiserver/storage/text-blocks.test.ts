import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KeptText, TextBlocks } from '../../../../src/apiserver/storage/text-blocks.ts';

/** Texts of all sizes and alphabets, each recognisable by its number. */
function textOf(i: number, length: number): string {
  const unit = ['a', 'ß', '語', '🙂'][i % 4] ?? '';
  return `${i}:${unit.repeat(Math.ceil(length / unit.length))}`;
}

describe('TextBlocks', () => {
  it('gives back every text as it came, whatever came and went before, released or not', () => {
    const step = fc.record({
      length: fc.oneof(fc.nat(3000), fc.nat({ max: 60_000 })),
      release: fc.nat(),
      asBytes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 50, maxLength: 200 }), (steps) => {
        const blocks = new TextBlocks();
        const present: { text: string; kept: KeptText }[] = [];
        const gone: { text: string; kept: KeptText }[] = [];
        steps.forEach(({ length, release, asBytes }, i) => {
          const text = textOf(i, length);
          present.push({ text, kept: asBytes ? blocks.addBytes(Buffer.from(text)) : blocks.add(text) });
          if (release % 2 === 0) return;
          const [one] = present.splice(release % present.length, 1);
          if (one === undefined) return;
          blocks.release(one.kept);
          gone.push(one);
        });
        for (const { text, kept } of [...present, ...gone]) {
          expect(kept.toString()).toBe(text);
          expect(kept.length).toBe(Buffer.byteLength(text));
        }
      }),
      { numRuns: 30 },
    );
  });

  it('copies a text, and what is behind its first bytes', () => {
    const kept = new TextBlocks().add('{"kind":"Pod","metadata":{"name":"ä"}}');
    const target = Buffer.alloc(100, '.');
    const whole = kept.copy(target, 1);
    const end = kept.copy(target, whole, 14);
    expect(target.toString('utf8', 0, end)).toBe(
      '.{"kind":"Pod","metadata":{"name":"ä"}}"metadata":{"name":"ä"}}',
    );
  });

  it('takes little more than what is in use, though most of what came has gone', () => {
    const blocks = new TextBlocks();
    const kept: KeptText[] = [];
    let passing: KeptText | undefined;
    for (let i = 0; i < 20_000; i++) {
      // One in ten stays, among others that are replaced by the next.
      if (i % 10 === 0) kept.push(blocks.add(textOf(i, 1000)));
      if (passing !== undefined) blocks.release(passing);
      passing = blocks.add(textOf(i, 1000));
    }
    const buffers = new Set(kept.map(({ block }) => block.bytes));
    const taken = [...buffers].reduce((sum, { length }) => sum + length, 0);
    const used = kept.reduce((sum, { length }) => sum + length, 0);
    expect(taken).toBeLessThan(used * 1.3 + 2 ** 19);
  });
});
