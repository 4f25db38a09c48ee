import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/read.ts';
import { startApiServer } from '../../../src/testing/index.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { insideOf } from '../support/up-process.ts';

describePods('The cluster network says what is wrong and goes on:', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1 });
    await pods.pod('good', 'good', { ports: [{ containerPort: 80 }] });
    await pods.service('good', {}, 80);
  });
  afterAll(() => pods.server.stop());

  const goesOn = () =>
    until(
      () => pods.namesOf({ namespace: 'default' }, 'http://good', 1),
      (names) => names.join() === 'good',
    );
  const eventsOf = async (pod: string, reason: string): Promise<readonly string[]> => {
    const { body } = await pods.call('GET', pods.path('events'));
    return listAt(body, 'items')
      .filter(
        (event) => textAt(event, 'involvedObject', 'name') === pod && textAt(event, 'reason') === reason,
      )
      .map((event) => textAt(event, 'message'));
  };

  it('a Pod that declares one port in two containers', async () => {
    const container = (name: string) => ({ name, image: 'x', ports: [{ containerPort: 80 }] });
    const spec = { containers: [container('one'), container('two')] };
    const { status } = await pods.call('POST', pods.path('pods'), {
      metadata: { name: 'twice', labels: { app: 'twice' } },
      spec,
    });
    expect(status).toBe(201);
    const [pod] = await pods.running('twice', 1);
    expect(await pods.namesOf({ node: 'node-1' }, `http://${pod?.status.podIP ?? ''}`, 1)).toEqual(['twice']);
  });

  it('a tool that is removed, until it is back', async () => {
    const user = process.getuid?.() === 0 ? [] : ['--user', '--preserve-credentials'];
    const inside = (script: string) => {
      const words = [...user, '--mount', '--pid', '--target', String(insideOf(process)), 'sh', '-c', script];
      const { status, stderr } = spawnSync('nsenter', words, { encoding: 'utf8' });
      expect(status, stderr).toBe(0);
    };
    // What is no program cannot be run.
    const ip = spawnSync('sh', ['-c', 'command -v ip'], { encoding: 'utf8' }).stdout.trim();
    inside(`mount --bind /dev/null ${ip}`);
    await pods.pod('late', 'late', { ports: [{ containerPort: 80 }] });
    const [message] = await until(
      () => eventsOf('late', 'FailedCreatePodSandBox'),
      (messages) => messages.length > 0,
    );
    expect(message).toContain('there is no ip: install the package iproute2');
    inside(`umount ${ip}`);
    await pods.running('late', 1);
    await goesOn();
  });

  it.each([
    [
      'of the LAN',
      { clusterCidr: '172.18.0.0/16' },
      /172\.18\.0\.0\/16 has addresses of the simulated machines/,
    ],
    ['of Services in the LAN', { serviceClusterIpRange: '172.19.0.0/16' }, /172\.19\.0\.0\/16 has addresses/],
    [
      'of Services and Pods alike',
      { clusterCidr: '10.96.0.0/16' },
      /10\.96\.0\.0\/16 is for Pods and for Services/,
    ],
  ])('a range %s', async (_, options, message) => {
    await expect(startApiServer({ network: true, nodes: 1, ...options })).rejects.toThrow(message);
    await goesOn();
  });

  it('a DNS name of 300 bytes, and a truncated packet', async () => {
    const label = '\\x3c' + 'a'.repeat(60);
    const head = '\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00';
    const long = `${head}${label.repeat(5)}\\x00\\x00\\x01\\x00\\x01`;
    const truncated = `${head}\\x05abc`;
    const ask = (packet: string) =>
      pods.server.run([
        ...['bash', '-c'],
        `exec 3<>/dev/udp/10.96.0.10/53; printf '${packet}' >&3; timeout 2 dd bs=600 count=1 status=none <&3 | od -An -tx1 | head -1`,
      ]);
    await goesOn();
    // FORMERR, with the id of the question.
    for (const packet of [long, truncated]) {
      const { stdout } = await ask(packet);
      expect(stdout.trim().split(' ').slice(0, 4).join(' ')).toMatch(/^12 34 8\d \d1$/);
    }
    await goesOn();
  });
});
