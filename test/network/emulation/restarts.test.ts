import { mkdtempSync, rmSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

describePods('Cluster networks', () => {
  const started = new Set<PodNetwork>();
  const folder = mkdtempSync('/tmp/servicenet-data-');
  const start = async (options: Parameters<typeof PodNetwork.start>[0]): Promise<PodNetwork> => {
    const network = await PodNetwork.start(options);
    started.add(network);
    return network;
  };
  const stop = async (network: PodNetwork): Promise<void> => {
    started.delete(network);
    await network.server.stop();
  };
  afterEach(async () => {
    for (const network of started) await stop(network);
    rmSync(folder, { recursive: true, force: true });
  });

  it('give Pods of a data directory fresh sandboxes with their addresses, and remove Pods of programs that are gone', async () => {
    const first = await start({ dataDirectory: folder });
    await first.pod('web', 'web', { ports: [{ containerPort: 80 }] });
    await first.service('web', {}, 80);
    const [before] = await first.running('web', 1);
    // A program that its `up` leaves behind: the Pod is stored, and nothing removes it.
    const program = first.server.run(['sleep', '1000']).catch(() => undefined);
    const clients = async (network: PodNetwork): Promise<readonly string[]> =>
      listAt((await network.call('GET', network.path('pods'))).body, 'items')
        .map((pod) => textAt(pod, 'metadata', 'name'))
        .filter((name) => name.startsWith('run-'));
    await until(
      () => clients(first),
      (names) => names.length === 1,
    );
    await stop(first);
    await program;

    const second = await start({ dataDirectory: folder });
    await until(
      () => second.namesOf({ node: 'node-1' }, `http://${before?.status.podIP ?? ''}`, 1),
      (names) => names.join() === 'web',
    );
    expect((await second.running('web', 1))[0]?.status.podIP).toBe(before?.status.podIP);
    expect(await clients(second)).toEqual([]);
    await until(
      () => second.namesOf({ namespace: 'default' }, 'http://web', 1),
      (names) => names.join() === 'web',
    );
  });

  it('give Pods of a data directory their further interfaces again', async () => {
    const options = { dataDirectory: folder, platform: 'openshift', nodes: 1 } as const;
    const first = await start(options);
    const address = '192.168.90.5';
    const ipam = { type: 'static', addresses: [{ address: `${address}/24`, gateway: '192.168.90.1' }] };
    const definitions = first.path('network-attachment-definitions', 'k8s.cni.cncf.io/v1');
    await first.call('POST', definitions, {
      apiVersion: 'k8s.cni.cncf.io/v1',
      ...{ kind: 'NetworkAttachmentDefinition', metadata: { name: 'lan' } },
      spec: { config: JSON.stringify({ cniVersion: '1.0.0', type: 'macvlan', master: 'eth1', ipam }) },
    });
    const annotations = { 'k8s.v1.cni.cncf.io/networks': 'lan' };
    await first.pod('web', 'web', { ports: [{ containerPort: 80 }] }, { annotations });
    const answers = (network: PodNetwork): Promise<unknown> =>
      until(
        () => network.namesOf({ outside: true }, `http://${address}`, 1),
        (names) => names.join() === 'web',
      );
    await answers(first);
    await stop(first);
    await answers(await start(options));
  });

  it('run several at once, with the same addresses, and do not notice each other', async () => {
    const networks = await Promise.all([start({ nodes: 1 }), start({ nodes: 2 }), start({ nodes: 1 })]);
    await Promise.all(
      networks.map(async (network, index) => {
        await network.pod(`web-${index}`, 'web', { ports: [{ containerPort: 80 }] });
        await network.service('web', { clusterIP: '10.96.0.100' }, 80);
      }),
    );
    const answers = (index: number): Promise<unknown> =>
      until(
        () => networks[index]?.namesOf({ node: 'node-1' }, 'http://10.96.0.100', 5) ?? Promise.resolve([]),
        (names) => names.join() === `web-${index}`,
      );
    for (const index of networks.keys()) await answers(index);
    const [gone] = networks;
    await stop(gone);
    await answers(1);
    await answers(2);
  });
});
