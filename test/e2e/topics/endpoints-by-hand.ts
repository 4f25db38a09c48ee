import { describe, expect, test } from 'vitest';
import { endpoints } from '../../../src/client/resources.ts';
import type { Cluster } from '../cluster.ts';
import type { Need } from '../need.ts';
import { addressesIn, labels, readEndpoints, readSlices } from './published.ts';

const mirroring = 'endpointslicemirroring-controller.k8s.io';
/** The most addresses that Endpoints hold, and that are mirrored of a subset. */
const most = 1000;

/** Endpoints that are not derived from Pods, and those that are too many. */
export function endpointsByHand(cluster: () => Cluster, need: Need): void {
  /** Addresses of networks for benchmarks and documentation, of the first family. */
  const addresses = (count: number): string[] =>
    Array.from({ length: count }, (_, i) =>
      cluster().families[0] === 'IPv4'
        ? `198.18.${(i + 1) >> 8}.${(i + 1) & 255}`
        : `2001:db8:203::${(i + 1).toString(16)}`,
    );

  const mirrored = async (namespace: string): Promise<string[]> => {
    const slices = await readSlices(cluster(), namespace, mirroring);
    return slices.flatMap((slice) => (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses));
  };

  describe('endpoints by hand', () => {
    test.each(['a headless Service', 'a Service with an address'])(
      'of %s without a selector are mirrored',
      async (what) => {
        const namespace = await cluster().namespace();
        await cluster().service(namespace, 'web', what === 'a headless Service' ? { clusterIP: 'None' } : {});
        const client = cluster().for(endpoints);
        const [first = '', second = ''] = addresses(2);
        const ports = [{ port: 5432 }];
        const metadata = { namespace, name: 'web' };
        await client.create({ metadata, subsets: [{ addresses: [{ ip: first }], ports }] });
        const become = (wanted: readonly string[]): Promise<string[]> =>
          cluster().until(
            () => mirrored(namespace),
            (found) => String(found) === String(wanted),
          );
        await become([first]);
        await client.mergePatch(namespace, 'web', { subsets: [{ addresses: [{ ip: second }], ports }] });
        await become([second]);
        const [slice] = await readSlices(cluster(), namespace, mirroring);
        expect(slice?.ports).toMatchObject([{ port: 5432, protocol: 'TCP' }]);
        await client.delete(namespace, 'web');
        await become([]);
      },
    );

    test(`no more than ${most} of a subset are mirrored`, async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', {});
      const subsets = [{ addresses: addresses(most + 1).map((ip) => ({ ip })), ports: [{ port: 80 }] }];
      await cluster()
        .for(endpoints)
        .create({ metadata: { namespace, name: 'web' }, subsets });
      const found = await cluster().until(
        () => mirrored(namespace),
        ({ length }) => length >= most,
      );
      expect(new Set(found).size).toBe(most);
    });

    test(`of more than ${most} Pods are all in slices, and so many in Endpoints`, async (context) => {
      need(context, 'pods-by-hand');
      const namespace = await cluster().namespace();
      const names = Array.from({ length: most + 1 }, (_, i) => `web-${i}`);
      for (let i = 0; i < names.length; i += 20) {
        await Promise.all(
          names.slice(i, i + 20).map((name) => cluster().pods.create(namespace, name, { labels })),
        );
      }
      await cluster().service(namespace, 'web', { selector: labels });
      await cluster().until(
        async () => (await readSlices(cluster(), namespace)).flatMap((slice) => slice.endpoints ?? []).length,
        (count) => count === most + 1,
      );
      const truncated = await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => addressesIn(found).length >= most,
      );
      expect(addressesIn(truncated)).toHaveLength(most);
      expect(truncated?.metadata.annotations?.['endpoints.kubernetes.io/over-capacity']).toBe('truncated');
    });
  });
}
