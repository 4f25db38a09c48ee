import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { pods } from '../../../src/client/resources.ts';
import type { EndpointConditions } from '../../../src/objects/types/discovery.generated.ts';
import type { Cluster } from '../cluster.ts';
import type { Need } from '../need.ts';
import { addressesIn, labels, readEndpoints, readSliceEndpoints, readSlices } from './published.ts';

/** What is said of an endpoint: whether it is ready, whether it ends, which port and which family it has. */
export function endpointConditions(cluster: () => Cluster, need: Need): void {
  /** Waits until the only endpoint has these conditions. */
  const untilConditions = (namespace: string, wanted: EndpointConditions): Promise<unknown> =>
    cluster().until(
      () => readSliceEndpoints(cluster(), namespace),
      (found) => found.length === 1 && found.every(({ conditions }) => isDeepStrictEqual(conditions, wanted)),
    );

  describe('endpoint conditions', () => {
    test('a Pod that is not ready is said to be none, until it is', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: labels });
      await cluster().pods.create(namespace, 'a', { labels, ready: false });
      await untilConditions(namespace, { ready: false, serving: false, terminating: false });
      const unready = await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => addressesIn(found, 'notReadyAddresses').length === 1,
      );
      expect(addressesIn(unready)).toEqual([]);
      await cluster().pods.becomeReady(namespace, 'a');
      await untilConditions(namespace, { ready: true, serving: true, terminating: false });
      const ready = await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => addressesIn(found).length === 1,
      );
      expect(addressesIn(ready, 'notReadyAddresses')).toEqual([]);
    });

    test('publishNotReadyAddresses publishes it all the same', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', {
        ...{ selector: labels, clusterIP: 'None', publishNotReadyAddresses: true },
      });
      await cluster().pods.create(namespace, 'a', { labels, ready: false });
      await untilConditions(namespace, { ready: true, serving: false, terminating: false });
      await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => addressesIn(found).length === 1,
      );
    });

    // KEP-1669: proxies fall back on endpoints that end, as long as they serve.
    test('a Pod that ends still serves, but is not ready', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: labels });
      await cluster().pods.create(namespace, 'a', { labels, lingers: true });
      await untilConditions(namespace, { ready: true, serving: true, terminating: false });
      await cluster().for(pods).delete(namespace, 'a');
      await untilConditions(namespace, { ready: false, serving: true, terminating: true });
      await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => addressesIn(found).length + addressesIn(found, 'notReadyAddresses').length === 0,
      );
      await cluster().for(pods).delete(namespace, 'a', { gracePeriodSeconds: 0 });
      await cluster().until(
        () => readSliceEndpoints(cluster(), namespace),
        (found) => found.length === 0,
      );
    });

    test('a named target port is what each Pod calls so', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', {
        ...{ selector: labels, ports: [{ port: 80, targetPort: 'http' }] },
      });
      for (const [name, containerPort] of [
        ['old', 8080],
        ['new', 9090],
      ] as const) {
        await cluster().pods.create(namespace, name, { labels, ports: [{ name: 'http', containerPort }] });
      }
      const slices = await cluster().until(
        () => readSlices(cluster(), namespace),
        (found) => found.flatMap((slice) => slice.endpoints ?? []).length === 2,
      );
      const byPort = slices
        .filter((slice) => (slice.endpoints ?? []).length > 0)
        .map((slice) => [
          slice.ports?.map(({ port }) => port),
          slice.endpoints?.map(({ targetRef }) => targetRef?.name),
        ]);
      expect(new Map(byPort.map(([ports, names]) => [String(ports), String(names)]))).toEqual(
        new Map([
          ['8080', 'old'],
          ['9090', 'new'],
        ]),
      );
      await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) =>
          String(found?.subsets?.flatMap((subset) => (subset.ports ?? []).map(({ port }) => port)).sort()) ===
          '8080,9090',
      );
    });

    test('there are slices of both families, and Endpoints of the first', async (context) => {
      need(context, 'dual-stack');
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { selector: labels, ipFamilyPolicy: 'RequireDualStack' });
      await cluster().pods.create(namespace, 'a', { labels });
      const slices = await cluster().until(
        () => readSlices(cluster(), namespace),
        (found) => found.flatMap((slice) => slice.endpoints ?? []).length === 2,
      );
      const byFamily = new Map(
        slices.map(({ addressType, endpoints }) => [addressType, endpoints?.[0]?.addresses]),
      );
      const { status } = await cluster().for(pods).get(namespace, 'a');
      const podIPs = (status.podIPs ?? []).map(({ ip }) => ip);
      const inOrder = cluster().families.map((family) =>
        podIPs.find((ip) => ip.includes(':') === (family === 'IPv6')),
      );
      expect(cluster().families.map((family) => byFamily.get(family)?.[0])).toEqual(inOrder);
      await cluster().until(
        () => readEndpoints(cluster(), namespace),
        (found) => String(addressesIn(found)) === inOrder[0],
      );
    });
  });
}
