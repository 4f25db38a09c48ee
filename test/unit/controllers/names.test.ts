import { InMemoryCloud } from '../../../src/platforms/openshift/cloud-private-ip/cloud.ts';
import { expect, test } from 'vitest';
import type { Transport } from '../../../src/client/transport.ts';
import { serviceAllocation } from '../../../src/controllers/index.ts';
import { allControllers, controllersBesideACluster } from '../../../src/platforms/catalog.ts';
import { localControllers, remoteControllers } from '../../../src/controllers/names.ts';
import { selectControllers } from '../../../src/controllers/run.ts';

const nowhere = new Error('nothing is asked before a controller starts');
const transport: Transport = {
  server: 'http://127.0.0.1',
  request: () => Promise.reject(nowhere),
  stream: () => Promise.reject(nowhere),
  close: () => Promise.resolve(),
};
const nodePorts = { first: 30_000, last: 32_767 };
const allocation = { transport, allocation: 'server', nodePorts } as const;
const sortedNames = (list: readonly { readonly name: string }[]): string[] =>
  list.map(({ name }) => name).toSorted();

test.each([
  [0, 'kubernetes'],
  [3, 'openshift'],
] as const)('those of `up` with %d nodes on %s are those of its catalog', (nodes, platform) => {
  const simulation = { count: nodes, clusterCidrs: ['10.244.0.0/16'] };
  const cluster = allControllers({
    transport,
    rootCa: 'PEM',
    checkPolicyTypes: () => Promise.resolve([]),
    cloud: new InMemoryCloud(),
    ingressToRoute: platform === 'openshift',
    ...(nodes === 0 ? {} : { simulation }),
  });
  const catalog = [...cluster, serviceAllocation(allocation, false)];
  expect(sortedNames(localControllers({ nodes, allocation: 'server', platform }))).toEqual(
    sortedNames(catalog),
  );
});

test('those of `servicenet controller` are those of its catalog, on by default the same', () => {
  const catalog = controllersBesideACluster(allocation, { transport });
  expect(sortedNames(remoteControllers())).toEqual(sortedNames(catalog));
  expect(selectControllers(['*'], remoteControllers())).toEqual(selectControllers(['*'], catalog));
});
