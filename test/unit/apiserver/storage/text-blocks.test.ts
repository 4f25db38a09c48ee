import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KeptText, TextBlocks } from '../../../../src/apiserver/storage/text-blocks.ts';

/** Texts of all sizes and alphabets, each recognisable by its number, those of one alphabet alike but for that. */
function textOf(i: number, length: number): string {
  const unit = ['a', 'ß', '語', '🙂'][i % 4] ?? '';
  return `${i}:${unit.repeat(Math.ceil(length / unit.length))}`;
}

/** Bytes of the blocks that texts are in. */
function takenBy(texts: readonly KeptText[]): number {
  const blocks = new Set(texts.map(({ home }) => home).filter((home) => typeof home !== 'string'));
  return [...blocks].reduce((sum, { bytes }) => sum + bytes.length, 0);
}

describe('TextBlocks', () => {
  it('gives back every text as it came, whatever came and went before, released or not', () => {
    const step = fc.record({
      length: fc.oneof(fc.nat(3000), fc.nat({ max: 60_000 })),
      release: fc.nat(),
      asBytes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 50, maxLength: 400 }), (steps) => {
        const blocks = new TextBlocks();
        const present: { text: string; kept: KeptText }[] = [];
        const gone: { text: string; kept: KeptText }[] = [];
        steps.forEach(({ length, release, asBytes }, i) => {
          const text = textOf(i, length);
          present.push({
            text,
            kept: asBytes ? blocks.addBytes(Buffer.from(text)) : blocks.add(text, 'texts'),
          });
          if (release % 2 === 0) return;
          const [one] = present.splice(release % present.length, 1);
          if (one === undefined) return;
          blocks.release(one.kept);
          gone.push(one);
        });
        for (const { text, kept } of [...present, ...gone]) {
          expect(kept.toString()).toBe(text);
          expect(kept.length).toBe(Buffer.byteLength(text));
          const target = Buffer.alloc(kept.length + 2, '.');
          expect(kept.copy(target, 1)).toBe(kept.length + 1);
          expect(target.toString()).toBe(`.${text}.`);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('copies a text, and what is behind its first bytes, when it is new and when it is not', () => {
    const blocks = new TextBlocks();
    const copied = (kept: KeptText): string => {
      const target = Buffer.alloc(1000, '.');
      return target.toString('utf8', 0, kept.copy(target, kept.copy(target, 1), 14));
    };
    const texts = Array.from({ length: 300 }, (_, i) => `{"kind":"Pod","metadata":{"name":"ä${i}"}}`);
    const kept = texts.map((text) => blocks.add(text, 'pods'));
    expect(kept.map(copied)).toEqual(texts.map((text) => `.${text}${text.slice(14)}`));
    expect(new Set(kept.map(({ home }) => typeof home))).toEqual(new Set(['object', 'string']));
  });

  it('takes little more than what is in use, though most of what came has gone', () => {
    const blocks = new TextBlocks();
    const kept: KeptText[] = [];
    let passing: KeptText | undefined;
    for (let i = 0; i < 20_000; i++) {
      const kind = `kind ${i}`; // none has another like it
      // One in ten stays, among others that are replaced only when they are in a block.
      if (i % 10 === 0) kept.push(blocks.add(textOf(i, 1000), kind));
      const next = blocks.add(textOf(i, 1000), kind);
      if (passing !== undefined) blocks.release(passing);
      passing = next;
    }
    const used = kept.reduce((sum, { length }) => sum + length, 0);
    expect(takenBy(kept)).toBeLessThan(used * 1.3 + 2 ** 19);
  });

  it('takes a fraction of texts that are alike, also when those that come later are of another shape', () => {
    const blocks = new TextBlocks();
    const shapes = ['made', 'runs'].map((word) =>
      Array.from({ length: 60 }, (_, i) => `"f:${word}-${i * i}":{".":{}},`).join(''),
    );
    const kept = shapes.flatMap((shape) =>
      Array.from({ length: 5000 }, (_, i) => blocks.add(`{"name":"web-${i}",${shape}"end":${i}}`, 'pods')),
    );
    const whole = kept.reduce((sum, { length }) => sum + length, 0);
    expect(whole).toBeGreaterThan(10 * 2 ** 20);
    expect(takenBy(kept)).toBeLessThan(whole / 10);
  });
});
