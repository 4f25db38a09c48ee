import { expect, test } from 'vitest';
import { Liveness } from '../../../../src/network/announcing/membership.ts';

test('an agent lives for a while from when its renewal was seen, whatever its clock says', () => {
  const liveness = new Liveness(2250);
  liveness.observe('a', '2001-01-01T00:00:00.000000Z', 1000);
  expect(liveness.isAlive('a', 3249)).toBe(true);
  expect(liveness.isAlive('a', 3250)).toBe(false);
  // The same renewal, read again, is none.
  liveness.observe('a', '2001-01-01T00:00:00.000000Z', 3000);
  expect(liveness.isAlive('a', 3250)).toBe(false);
  // One with an earlier time is: the clock of that node jumped.
  liveness.observe('a', '2000-01-01T00:00:00.000000Z', 3300);
  expect(liveness.isAlive('a', 5549)).toBe(true);
});

test('a promise and a pause prolong the life of agents, and make none fresh', () => {
  const liveness = new Liveness(2000);
  liveness.observe('a', '1', 0);
  expect(liveness.promise('a', 1000)).toBe(true);
  expect([2999, 3000].map((now) => liveness.isAlive('a', now))).toEqual([true, false]);
  expect([1999, 2000].map((now) => liveness.isFresh('a', now))).toEqual([true, false]);
  liveness.resume(5000);
  expect([6999, 7000].map((now) => liveness.isAlive('a', now))).toEqual([true, false]);
  liveness.observe('a', undefined, 7000);
  expect(liveness.promise('a', 7000)).toBe(false);
});

test('an agent whose Lease lasts longer lives longer, until a shorter one is seen', () => {
  const liveness = new Liveness(2000);
  liveness.observe('a', '1', 0, 1000);
  expect([2999, 3000].map((now) => liveness.isAlive('a', now))).toEqual([true, false]);
  expect(liveness.nextEnd(0)).toBe(3000);
  liveness.observe('a', '2', 100);
  expect([2099, 2100].map((now) => liveness.isAlive('a', now))).toEqual([true, false]);
});

test('an agent that gives its Lease back is gone at once', () => {
  const liveness = new Liveness(2250);
  liveness.observe('a', '1', 0);
  liveness.observe('a', undefined, 1);
  expect(liveness.isAlive('a', 1)).toBe(false);
  liveness.observe('b', '1', 0);
  liveness.forget('b');
  expect(liveness.isAlive('b', 1)).toBe(false);
});

test('the next end is that of the agent that was seen longest ago, of those that live', () => {
  const liveness = new Liveness(2000);
  expect(liveness.nextEnd(0)).toBe(Number.POSITIVE_INFINITY);
  liveness.observe('a', '1', 0);
  liveness.observe('b', '1', 500);
  expect(liveness.nextEnd(600)).toBe(2000);
  expect(liveness.nextEnd(2000)).toBe(2500);
});
