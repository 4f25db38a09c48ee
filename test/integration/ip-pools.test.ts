import { afterAll, beforeAll, expect, test } from 'vitest';
import { readWhereaboutsRange } from '../../src/allocation/whereabouts.ts';
import { overlappingRangeIPReservations } from '../../src/client/resources.ts';
import { IPPools } from '../../src/platforms/cni/ip-pools.ts';
import type { HeldAddresses, SandboxAttempt } from '../../src/platforms/cni/ip-pools.ts';
import { recordAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { controllerContext } from '../support/controller-context.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { call } from '../support/test-server.ts';
import { itemsOf } from '../support/with-controllers.ts';

const whereabouts = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system';
const { signal } = new AbortController();

/** Two instances of a controller, the first of which is slow: a Pod is gone, and the next one of its name comes. */
let server: TestServer;
let first: IPPools;
let second: IPPools;

beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift', controllers: [] });
  const instance = (): IPPools => {
    const context = controllerContext(new FakeClock(), server.client);
    return new IPPools(context, context.informers.informer(overlappingRangeIPReservations));
  };
  [first, second] = [instance(), instance()];
});
afterAll(async () => server.stop());

const podref = 'default/web-0';
const of = (range: string) => ({
  ...{ range: readWhereaboutsRange({ range }), networkName: '', overlapping: true },
});
const owner = { podref, ifname: 'net1' };
const attempt = (sandbox: string): SandboxAttempt => ({
  ...{ sandbox, entries: [], reservations: [], hasLeftovers: false },
});

async function left(range: string): Promise<{ allocations: object; reservations: number }> {
  const pool = await call(server.client, 'GET', `${whereabouts}/ippools/${range.replace('/', '-')}`);
  const reserved = await call(server.client, 'GET', `${whereabouts}/overlappingrangeipreservations`);
  return {
    allocations: recordAt(pool.body, 'spec', 'allocations'),
    reservations: itemsOf(reserved.body).length,
  };
}

test('what the next Pod of a name has taken over is not given back for the last one', async () => {
  const range = '10.80.0.0/24';
  await first.allocate(of(range), owner, attempt('old'), signal);
  const held = await first.held(podref, signal);
  await second.allocate(of(range), owner, attempt('new'), signal);
  expect(await first.release(held, signal)).toEqual([]);
  const allocation = { 1: { id: 'new', podref, ifname: 'net1' } };
  expect(await left(range)).toEqual({ allocations: allocation, reservations: 1 });
  // Its own go.
  expect(await second.release(await second.held(podref, signal), signal)).toHaveLength(1);
  expect(await left(range)).toEqual({ allocations: {}, reservations: 0 });
});

test('who fails gives back what it has made, and not what another writer has taken over', async () => {
  const range = '10.83.0.0/24';
  const failing = attempt('failing');
  const going = attempt('going');
  expect(await first.allocate(of(range), owner, failing, signal)).toBe(
    await second.allocate(of(range), owner, going, signal),
  );
  expect(await first.release(failing, signal)).toEqual([]);
  const allocation = { 1: { id: 'going', podref, ifname: 'net1' } };
  expect(await left(range)).toEqual({ allocations: allocation, reservations: 1 });
  // It has made nothing.
  expect(await second.release(going, signal)).toEqual([]);
  expect(await first.release(await first.held(podref, signal), signal)).toHaveLength(1);
  const alone = attempt('alone');
  await first.allocate(of(range), owner, alone, signal);
  expect(await first.release(alone, signal)).toHaveLength(1);
  expect(await left(range)).toEqual({ allocations: {}, reservations: 0 });
});

test('a reservation that was left behind is taken over too', async () => {
  const range = '10.81.0.0/24';
  await first.allocate(of(range), owner, attempt('old'), signal);
  const { entries, reservations } = await first.held(podref, signal);
  const half: HeldAddresses = { entries: [], reservations };
  expect(await first.release({ entries, reservations: [] }, signal)).toHaveLength(1);
  await second.allocate(of(range), owner, attempt('new'), signal);
  await first.release(half, signal);
  expect((await left(range)).reservations).toBe(1);
  await second.release(await second.held(podref, signal), signal);
});

test('what was held is given back once, however often it is released', async () => {
  const range = '10.82.0.0/24';
  await first.allocate(of(range), owner, attempt('old'), signal);
  const held = await first.held(podref, signal);
  expect(await first.release(held, signal)).toMatchObject([{ address: '10.82.0.1', id: 'old' }]);
  expect(await left(range)).toEqual({ allocations: {}, reservations: 0 });
  expect(await second.release(held, signal)).toEqual([]);
});
