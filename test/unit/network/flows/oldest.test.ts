import fc from 'fast-check';
import { expect, it } from 'vitest';
import { setYoungest, takeOldest } from '../../../../src/network/flows/oldest.ts';

it('of more entries than are kept, the youngest stay', () => {
  const most = 20;
  fc.assert(
    fc.property(fc.array(fc.nat(40), { maxLength: 200 }), (keys) => {
      const map = new Map<number, number>();
      let model: readonly number[] = [];
      keys.forEach((key, index) => {
        setYoungest(map, key, index, most);
        model = [...model.filter((each) => each !== key), key];
        expect(map.get(key)).toBe(index);
        expect(map.size).toBeLessThanOrEqual(most + most / 10);
        expect(map.size).toBeGreaterThanOrEqual(Math.min(most, model.length));
        expect([...map.keys()]).toEqual(model.slice(-map.size));
      });
    }),
  );
});

it('what is taken away is told, the oldest first', () => {
  const map = new Map(Array.from({ length: 23 }, (_, index) => [index, `entry ${index}`]));
  expect(takeOldest(map, 20)).toEqual(['entry 0', 'entry 1', 'entry 2']);
  expect(takeOldest(map, 20)).toEqual([]);
  expect(map.size).toBe(20);
});
