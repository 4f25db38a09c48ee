import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { ResourceType } from '../../../../src/client/resources.ts';
import { SharedInformer } from '../../../../src/client/informers/shared-informer.ts';
import { TimeSlices } from '../../../../src/telemetry/time-slice.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { pod } from '../../../support/objects.ts';

const things: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'things',
  kind: 'Thing',
  namespaced: true,
  isObject: (_object): _object is KubeObject => true,
};

/** Slices that are over after every step. */
class NoTime extends TimeSlices {
  readonly #look: () => void;
  constructor(look: () => void) {
    super();
    this.#look = look;
  }
  override get due(): boolean {
    return true;
  }
  override yield(): Promise<void> {
    this.#look();
    return Promise.resolve();
  }
}

test('a list is not over while objects that it lacks are still in the cache', async () => {
  const informer = new SharedInformer({
    resource: things,
    clock: new FakeClock(),
    log: pino({ level: 'silent' }),
  });
  const isWrong = (): boolean => informer.cache.size > 1 && !informer.isListing;
  informer.listing();
  for (const name of ['a', 'b', 'c']) informer.upsert(pod(name, '1'), true);
  await informer.listed(new TimeSlices());
  expect([informer.isListing, informer.cache.size]).toEqual([false, 3]);
  informer.listing();
  informer.upsert(pod('c', '1'), true);
  const looks: boolean[] = [];
  await informer.listed(new NoTime(() => looks.push(isWrong())));
  expect(looks).toEqual([false, false]);
  expect([informer.isListing, informer.cache.size]).toEqual([false, 1]);
});
