import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { randomFree, type Bitmap } from '../../../src/allocation/bitmap.ts';
import { createBitmap } from '../../../src/allocation/bitmap.ts';
import { DenseBitmap } from '../../../src/allocation/bitmap.ts';
import { SparseBitmap } from '../../../src/allocation/bitmap.ts';

/** The plain set that a bitmap must behave like. */
class Model {
  readonly taken = new Set<number>();
  readonly size: number;
  constructor(size: number) {
    this.size = size;
  }
  nextFree(from: number): number {
    for (let i = from; i < this.size; i++) if (!this.taken.has(i)) return i;
    return -1;
  }
}

type Step = ['set' | 'clear' | 'has' | 'nextFree', number] | ['fill', number, number];

const steps = (size: number): fc.Arbitrary<Step[]> => {
  const offset = fc.integer({ min: 0, max: Math.max(0, size - 1) });
  const one = fc.tuple(fc.constantFrom('set' as const, 'clear', 'has', 'nextFree'), offset);
  const fill = fc.tuple(fc.constant('fill' as const), offset, fc.integer({ min: 0, max: size }));
  return fc.array(fc.oneof({ weight: 6, arbitrary: one }, { weight: 1, arbitrary: fill }), { maxLength: 60 });
};

function replay(bitmap: Bitmap, size: number, list: readonly Step[]): void {
  const model = new Model(size);
  for (const step of list) {
    const [kind, offset] = step;
    if (size === 0) expect(bitmap.nextFree(0)).toBe(-1);
    else if (kind === 'set') {
      expect(bitmap.set(offset)).toBe(!model.taken.has(offset));
      model.taken.add(offset);
    } else if (kind === 'clear') expect(bitmap.clear(offset)).toBe(model.taken.delete(offset));
    else if (kind === 'has') expect(bitmap.has(offset)).toBe(model.taken.has(offset));
    else if (kind === 'nextFree') expect(bitmap.nextFree(offset)).toBe(model.nextFree(offset));
    else {
      for (let i = offset; i < Math.min(size, offset + (step[2] ?? 0)); i++) {
        bitmap.set(i);
        model.taken.add(i);
      }
    }
    expect(bitmap.count).toBe(model.taken.size);
  }
  expect(bitmap.nextFree(size)).toBe(-1);
}

describe('DenseBitmap', () => {
  test.each([0, 1, 31, 32, 33, 63, 1023, 1024, 1025, 3000])('of %d behaves like a set', (size) => {
    fc.assert(
      fc.property(steps(size), (list) => replay(new DenseBitmap(size), size, list)),
      { numRuns: 60 },
    );
  });

  test('fills and empties three levels of words', () => {
    const size = 40_000;
    const bitmap = new DenseBitmap(size);
    for (let i = 0; i < size; i++) expect(bitmap.nextFree(0)).toBe(bitmap.set(i) ? i : -2);
    expect(bitmap.nextFree(0)).toBe(-1);
    for (const hole of [39_999, 32_768, 1024, 0]) {
      bitmap.clear(hole);
      expect(bitmap.nextFree(0)).toBe(hole);
      bitmap.set(hole);
    }
    for (let i = 0; i < size; i++) {
      bitmap.clear(i);
      expect(bitmap.nextFree(0)).toBe(0);
    }
    expect(bitmap.count).toBe(0);
  });
});

describe('SparseBitmap', () => {
  test('behaves like a set over small pages of a large range', () => {
    // Pages hold 2^16 offsets: a range of three and a bit, in which the steps meet at the borders.
    const size = 3 * 65536 + 10;
    const near = fc.constantFrom(0, 65535, 65536, 131071, 131072, 196607, 196608, size - 1);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), near), { maxLength: 40 }), (list) => {
        const bitmap = new SparseBitmap(size, createBitmap);
        const model = new Set<number>();
        for (const [set, offset] of list) {
          if (set) expect(bitmap.set(offset)).toBe(!model.has(offset));
          else expect(bitmap.clear(offset)).toBe(model.delete(offset));
          if (set) model.add(offset);
          expect(bitmap.has(offset)).toBe(set);
          expect(bitmap.count).toBe(model.size);
          let free = 65535;
          while (model.has(free)) free++;
          expect(bitmap.nextFree(65535)).toBe(free);
        }
      }),
      { numRuns: 100 },
    );
  });

  test('jumps over full pages', () => {
    const size = 4 * 65536;
    const bitmap = new SparseBitmap(size, createBitmap);
    for (let i = 0; i < 3 * 65536; i++) bitmap.set(i);
    expect(bitmap.nextFree(0)).toBe(3 * 65536);
    bitmap.clear(70_000);
    expect(bitmap.nextFree(0)).toBe(70_000);
    for (let i = 3 * 65536; i < size; i++) bitmap.set(i);
    bitmap.set(70_000);
    expect(bitmap.nextFree(0)).toBe(-1);
    expect(bitmap.count).toBe(size);
  });

  test('holds offsets up to 2^53', () => {
    const bitmap = createBitmap(2 ** 53);
    const offsets = [0, 2 ** 32, 2 ** 40 + 7, 2 ** 53 - 1];
    for (const offset of offsets) expect(bitmap.set(offset)).toBe(true);
    for (const offset of offsets)
      expect([bitmap.has(offset), bitmap.has(offset === 0 ? 1 : offset - 1)]).toEqual([true, false]);
    expect(bitmap.nextFree(2 ** 53 - 1)).toBe(-1);
    expect(bitmap.nextFree(2 ** 40 + 7)).toBe(2 ** 40 + 8);
    for (const offset of offsets) expect(bitmap.clear(offset)).toBe(true);
    expect(bitmap.count).toBe(0);
  });
});

describe('randomFree', () => {
  test('finds the only free offset of a band from every start, and none outside of the band', () => {
    for (let hole = 0; hole < 10; hole++) {
      const bitmap = createBitmap(20);
      for (let i = 0; i < 20; i++) if (i !== hole && i < 15) bitmap.set(i);
      for (let start = 0; start < 10; start++) expect(randomFree(bitmap, 0, 10, () => start / 10)).toBe(hole);
      bitmap.set(hole);
      expect(randomFree(bitmap, 0, 10, () => 0.5)).toBe(-1);
    }
    expect(randomFree(createBitmap(5), 3, 3, () => 0)).toBe(-1);
  });
});
