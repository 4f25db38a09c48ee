import { afterAll, beforeAll, expect, it } from 'vitest';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

/** As long as a name of a Node can be. */
const longest = `${'n'.repeat(63)}.${'o'.repeat(63)}.${'d'.repeat(63)}.${'e'.repeat(61)}`;

describePods('Machines of nodes', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1, addressPools: ['198.51.100.0/28'] });
    await pods.deploy('web', 1, { ports: [{ containerPort: 80 }] });
    await pods.service('web', { type: 'LoadBalancer' }, 80);
    await pods.running('web', 1);
  });
  afterAll(() => pods.server.stop());

  it.each([
    ['the machine that is no node', 'outside'],
    ['a network namespace of another', 'node1'],
    ['the switch', 'lan'],
    ['253 characters', longest],
  ])('have Nodes with the name of %s, and end with them', async (_, name) => {
    const annotations = { 'servicenet.dev/kubelet': 'simulated' };
    await pods.call('POST', '/api/v1/nodes', { metadata: { name, annotations } });
    await pods.pod(
      `on-${name.length}`,
      name.slice(0, 8),
      { ports: [{ containerPort: 80 }] },
      { spec: { nodeName: name } },
    );
    const [pod] = await pods.running(name.slice(0, 8), 1);
    const [address = ''] = await pods.addressesOf(name);
    const links = (await pods.server.run(['ip', '-br', 'address'], { node: name })).stdout;
    expect(links).toContain(`${address}/`);
    const answer = await pods.get({ node: 'node-1' }, `http://${pod?.status.podIP ?? ''}`);
    expect(answer).toMatchObject({ node: name });

    await pods.delete('pods', `on-${name.length}`);
    await pods.call('DELETE', `/api/v1/nodes/${name}`);
    await expect(
      until(
        () => pods.server.run(['true'], { node: name }).catch((error: unknown) => error),
        (result) => result instanceof Error,
      ),
    ).resolves.toMatchObject({ message: `there is no node ${name}` });
    expect(await pods.get({ outside: true }, 'http://198.51.100.1')).toMatchObject({ node: 'node-1' });
  });
});
