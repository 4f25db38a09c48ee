import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { forMakers } from '../support/for-makers.ts';
import {
  type Backend,
  clusterIPs,
  families,
  ServiceNetwork,
  terminating,
} from '../support/service-network.ts';

const pods = ['a-1', 'b-1', 'c-2'] as const;
const [webIPs] = clusterIPs;
const nodePort = 30_090;
const ports = [{ port: 80, targetPort: 8080, nodePort }];

/** Each test has a Service of another name: clients keep their endpoints of the last one. */
forMakers('session affinity', (maker) => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(maker, { 'node-1': ['client', 'a-1', 'b-1'], 'node-2': ['c-2'] });
  });
  afterAll(() => cluster.close());

  /** A cluster IP asked by a Pod, and a node port asked from outside. */
  const destinations = families.flatMap((family) => [
    { type: 'clusterIP', family, from: 'client', address: () => webIPs[family], port: 80 },
    {
      type: 'NodePort',
      family,
      from: 'outside',
      address: () => cluster.addresses('node-1')[family],
      port: nodePort,
    },
  ]);

  it.for(destinations)(
    'should have session affinity work for service with type $type ($family)',
    async ({ type, family, from, address, port }) => {
      const name = `kept-${type}-${family}`.toLowerCase();
      const spec = { type: 'NodePort', ports, sessionAffinity: 'ClientIP' };
      await cluster.apply({ name, spec, backends: pods });
      const first = await cluster.answering(from, address(), { port, times: 1 });
      expect(await cluster.answering(from, address(), { port })).toEqual(first);
    },
  );

  it.for(destinations)(
    'should be able to switch session affinity for service with type $type ($family)',
    async ({ type, family, from, address, port }) => {
      const name = `switched-${type}-${family}`.toLowerCase();
      const apply = (sessionAffinity: string): Promise<void> =>
        cluster.apply({ name, spec: { type: 'NodePort', ports, sessionAffinity }, backends: pods });
      await apply('None');
      expect(await cluster.answering(from, address(), { port, times: 60 })).toEqual(pods);
      await apply('ClientIP');
      const first = await cluster.answering(from, address(), { port, times: 1 });
      expect(await cluster.answering(from, address(), { port })).toEqual(first);
      await apply('None');
      expect(await cluster.answering(from, address(), { port, times: 60 })).toEqual(pods);
    },
  );

  it.for(destinations)(
    'should have session affinity timeout work for service with type $type ($family)',
    async ({ type, family, from, address, port }) => {
      const name = `forgotten-${type}-${family}`.toLowerCase();
      const seconds = 1;
      const spec = {
        ...{ type: 'NodePort', ports, sessionAffinity: 'ClientIP' },
        sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } },
      };
      await cluster.apply({ name, spec, backends: pods });
      const [first] = await cluster.answering(from, address(), { port, times: 1 });
      let asked = performance.now();
      for (let i = 0; i < 15; i++) {
        const since = asked;
        asked = performance.now();
        const [again] = await cluster.answering(from, address(), { port, times: 1 });
        // On a machine that is this busy, the time may have been over.
        if (performance.now() - since < seconds * 1000) expect(again).toBe(first);
        else break;
        await delay(20);
      }
      const later = (): Promise<readonly string[]> => cluster.answering(from, address(), { port, times: 1 });
      await expect.poll(later, { interval: seconds * 1000 + 200 }).not.toEqual([first]);
    },
  );

  it('should keep a client at its endpoint while others come and go, and lose those of an endpoint that ends', async () => {
    const apply = (...backends: readonly (string | Backend)[]): Promise<void> =>
      cluster.apply({ name: 'moving', spec: { sessionAffinity: 'ClientIP' }, backends });
    const ask = async (): Promise<readonly string[]> => {
      const first = await cluster.answering('client', webIPs.IPv4, { times: 1 });
      expect(await cluster.answering('client', webIPs.IPv4)).toEqual(first);
      return first;
    };
    await apply('b-1');
    expect(await ask()).toEqual(['b-1']);
    await apply('a-1', 'b-1', 'c-2');
    expect(await ask()).toEqual(['b-1']);
    await apply('b-1', 'c-2');
    expect(await ask()).toEqual(['b-1']);
    await apply(terminating('b-1'), 'c-2');
    expect(await ask()).toEqual(['c-2']);
    await apply('b-1', 'c-2');
    expect(await ask(), 'the newer choice holds').toEqual(['c-2']);
  });
});
