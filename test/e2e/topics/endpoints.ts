import { describe, expect, test } from 'vitest';
import { pods, services } from '../../../src/client/resources.ts';
import type { Cluster } from '../cluster.ts';
import { addressesIn, labels, readEndpoints, readSliceEndpoints } from './published.ts';

/** Endpoints and EndpointSlices follow Pods. */
export function endpointsFollowPods(cluster: () => Cluster): void {
  const readyInSlices = async (namespace: string): Promise<string[]> => {
    const found = await readSliceEndpoints(cluster(), namespace);
    return found
      .filter(({ conditions }) => conditions?.ready === true)
      .flatMap(({ addresses }) => addresses)
      .sort();
  };

  /** Addresses of the Pods, as the Pods say them. */
  const readPods = async (namespace: string): Promise<string[]> => {
    const { items } = await cluster().for(pods).list({ namespace, labelSelector: 'app=web' });
    return items.flatMap(({ status }) => status.podIP ?? []).sort();
  };

  const follow = async (namespace: string, count: number): Promise<void> => {
    const slices = await cluster().until(
      () => readyInSlices(namespace),
      (found) => found.length === count,
    );
    const object = await cluster().until(
      () => readEndpoints(cluster(), namespace),
      (found) => addressesIn(found).length === count,
    );
    expect(slices).toEqual(await readPods(namespace));
    expect(addressesIn(object)).toEqual(slices);
  };

  describe('endpoints', () => {
    test('follow Pods that come and go, and the Service', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: labels });
      await cluster().pods.create(namespace, 'a', { labels });
      await cluster().pods.create(namespace, 'b', { labels });
      await cluster().pods.create(namespace, 'other', { labels: { app: 'other' } });
      await follow(namespace, 2);
      await cluster().for(pods).delete(namespace, 'a', { gracePeriodSeconds: 0 });
      await follow(namespace, 1);
      await cluster().for(services).delete(namespace, 'web');
      await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => found === undefined,
      );
    });

    test('follow the selector', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: { app: 'nobody' } });
      await cluster().pods.create(namespace, 'a', { labels });
      await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => found !== undefined && addressesIn(found).length === 0,
      );
      await cluster()
        .for(services)
        .mergePatch(namespace, 'web', { spec: { selector: labels } });
      await follow(namespace, 1);
    });
  });
}
