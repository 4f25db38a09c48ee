import { describe, expect, test } from 'vitest';
import { endpoints, endpointSlices, pods, services } from '../../../src/client/resources.ts';
import { isNotFound } from '../../../src/client/errors.ts';
import type { Cluster } from '../cluster.ts';

/** Endpoints and EndpointSlices follow Pods. */
export function endpointsFollowPods(cluster: () => Cluster): void {
  const labels = { app: 'web' };
  const podAddresses = (last: number): string =>
    cluster().families[0] === 'IPv4' ? `10.250.0.${last}` : `fd00:250::${last}`;

  const readSlices = async (namespace: string): Promise<string[]> => {
    const { items } = await cluster()
      .for(endpointSlices)
      .list({ namespace, labelSelector: 'kubernetes.io/service-name=web' });
    return items
      .flatMap((slice) => slice.endpoints ?? [])
      .filter(({ conditions }) => conditions.ready === true)
      .flatMap(({ addresses }) => addresses)
      .sort();
  };

  const readEndpoints = async (namespace: string): Promise<string[] | undefined> => {
    try {
      const { subsets } = await cluster().for(endpoints).get(namespace, 'web');
      return (subsets ?? []).flatMap(({ addresses }) => (addresses ?? []).map(({ ip }) => ip)).sort();
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  /** Addresses of the ready Pods, as the Pods say them. */
  const readPods = async (namespace: string): Promise<string[]> => {
    const { items } = await cluster().for(pods).list({ namespace, labelSelector: 'app=web' });
    return items.flatMap(({ status }) => status.podIP ?? []).sort();
  };

  const follow = async (namespace: string, count: number): Promise<string[]> => {
    const slices = await cluster().until(
      () => readSlices(namespace),
      (found) => found.length === count,
    );
    await cluster().until(
      () => readEndpoints(namespace),
      (found) => found?.length === count,
    );
    expect(slices).toEqual(await readPods(namespace));
    expect(await readEndpoints(namespace)).toEqual(slices);
    return slices;
  };

  describe('endpoints', () => {
    test('follow Pods that come and go, and the Service', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: labels });
      await cluster().pod(namespace, 'a', labels, podAddresses(1));
      await cluster().pod(namespace, 'b', labels, podAddresses(2));
      await cluster().pod(namespace, 'other', { app: 'other' }, podAddresses(3));
      await follow(namespace, 2);
      await cluster().for(pods).delete(namespace, 'a', { gracePeriodSeconds: 0 });
      await follow(namespace, 1);
      await cluster().for(services).delete(namespace, 'web');
      await cluster().until(
        () => readEndpoints(namespace),
        (found) => found === undefined,
      );
    });

    test('follow the selector', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: { app: 'nobody' } });
      await cluster().pod(namespace, 'a', labels, podAddresses(4));
      await cluster().until(
        () => readEndpoints(namespace),
        (found) => found?.length === 0,
      );
      await cluster()
        .for(services)
        .mergePatch(namespace, 'web', { spec: { selector: labels } });
      await follow(namespace, 1);
    });
  });
}
