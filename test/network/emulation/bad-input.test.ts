import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import type { Pod } from '../../../src/objects/types/core.generated.ts';
import { startApiServer } from '../../../src/testing/index.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { insideOf } from '../support/up-process.ts';

describePods('The cluster network says what is wrong and goes on:', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    // Room for two nodes.
    pods = await PodNetwork.start({ nodes: 1, clusterCidr: '10.244.0.0/23' });
    await pods.pod('good', 'good', { ports: [{ containerPort: 80 }] });
    await pods.service('good', {}, 80);
  });
  afterAll(() => pods.server.stop());

  const goesOn = () =>
    until(
      () => pods.namesOf({ namespace: 'default' }, 'http://good', 1),
      (names) => names.join() === 'good',
    );
  /** The message of the first Event about one of these objects with this reason and these words. */
  const eventOf = async (names: string | readonly string[], reason: string, words = ''): Promise<string> => {
    const messages = await until(
      async () => {
        const { body } = await pods.call('GET', pods.path('events'));
        return listAt(body, 'items')
          .filter(
            (event) =>
              [names].flat().includes(textAt(event, 'involvedObject', 'name')) &&
              textAt(event, 'reason') === reason,
          )
          .map((event) => textAt(event, 'message'))
          .filter((text) => text.includes(words));
      },
      (found) => found.length > 0,
    );
    return messages[0] ?? '';
  };
  /** Makes a program of this machine one that cannot be run, inside the network; returns what undoes it. */
  const remove = (program: string): (() => void) => {
    const user = process.getuid?.() === 0 ? [] : ['--user', '--preserve-credentials'];
    const inside = (script: string) => {
      const words = [...user, '--mount', '--pid', '--target', String(insideOf(process)), 'sh', '-c', script];
      const { status, stderr } = spawnSync('nsenter', words, { encoding: 'utf8' });
      expect(status, stderr).toBe(0);
    };
    const find = `PATH="$PATH:/usr/sbin:/sbin" command -v ${program}`;
    const file = spawnSync('sh', ['-c', find], { encoding: 'utf8' }).stdout.trim();
    inside(`mount --bind /dev/null ${file}`);
    // One that runs goes on.
    inside(
      `for at in /proc/[0-9]*; do if [ "$(cat "$at/comm")" = ${program} ]; then kill "\${at#/proc/}"; fi; done`,
    );
    return () => inside(`umount ${file}`);
  };
  const addNode = async (name: string, spec: object = {}): Promise<void> => {
    const metadata = { name, annotations: { 'servicenet.dev/kubelet': 'simulated' } };
    expect((await pods.call('POST', '/api/v1/nodes', { metadata, spec })).status).toBe(201);
  };
  const answers = async (name: string): Promise<void> => {
    const [pod] = await pods.running(name, 1);
    const url = `http://${pod?.status.podIP ?? ''}`;
    await until(
      () => pods.namesOf({ node: 'node-1' }, url, 1),
      (names) => names.join() === name,
    );
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

  it('a command that is not built in, where those of the machine do not run', async () => {
    const container = { image: 'ghcr.io/shop/manager:v1', command: ['/manager'] };
    await pods.pod('once', 'once', container, { spec: { restartPolicy: 'Never' } });
    await pods.pod('again', 'again', container);
    const stateOf = async (name: string): Promise<unknown> => {
      const { body } = await pods.call('GET', `${pods.path('pods')}/${name}`);
      return (body as unknown as Pod).status.containerStatuses?.[0]?.state;
    };
    await expect
      .poll(() => stateOf('once'))
      .toMatchObject({
        terminated: {
          exitCode: 127,
          reason: 'StartError',
          message: expect.stringContaining('--containers=auto') as string,
        },
      });
    await expect.poll(() => stateOf('again')).toMatchObject({ waiting: { reason: 'CrashLoopBackOff' } });
    expect(await eventOf('again', 'Failed')).toMatch(/^Error: exec: "\/manager": .*--containers=auto/);
    await goesOn();
  });

  it('ip that is removed, until it is back', async () => {
    const putBack = remove('ip');
    await pods.pod('late', 'late', { ports: [{ containerPort: 80 }] });
    const message = await eventOf('late', 'FailedCreatePodSandBox');
    expect(message).toContain('there is no ip: install the package iproute2');
    putBack();
    await answers('late');
    await goesOn();
  });

  it('nft that is removed, until it is back', async () => {
    const putBack = remove('nft');
    await pods.pod('ported', 'ported', { ports: [{ containerPort: 80, hostPort: 8090 }] });
    const { clusterIP = '' } = await pods.service('ported', {}, 80);
    const advice = 'there is no program nft: install the package nftables';
    expect(await eventOf('ported', 'FailedCreatePodSandBox')).toContain(advice);
    const message = await eventOf('node-1', 'FailedToForward', advice);
    expect(message).toMatch(/^Services are forwarded as they were before: /);
    await goesOn();
    putBack();
    await answers('ported');
    await until(
      () => pods.namesOf({ namespace: 'default' }, `http://${clusterIP}`, 1),
      (names) => names.join() === 'ported',
    );
    const [node = ''] = await pods.addressesOf('node-1');
    expect(await pods.namesOf({ outside: true }, `http://${node}:8090`, 1)).toEqual(['ported']);
  });

  it('two Pods that take one port of a node', async () => {
    const { status } = await pods.call('POST', pods.path('pods'), {
      metadata: { name: 'second', labels: { app: 'second' } },
      spec: {
        hostNetwork: true,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'main', image: 'x', ports: [{ containerPort: 8091 }] }],
      },
    });
    expect(status).toBe(201);
    await pods.running('second', 1);
    await pods.pod('third', 'third', { ports: [{ containerPort: 80, hostPort: 8091 }] });
    expect(await eventOf('third', 'FailedScheduling')).toBe(
      "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    );
    await pods.delete('pods', 'second');
    await answers('third');
    await pods.delete('pods', 'third');
  });

  it('a node that has no addresses left for Pods, and one that none were left for', async () => {
    const cordon = { unschedulable: true };
    await addNode('small', { ...cordon, podCIDR: '10.244.1.0/30', podCIDRs: ['10.244.1.0/30'] });
    const onSmall = ['a', 'b', 'c', 'd'].map((name) => `small-${name}`);
    const at = (nodeName: string) => ({ spec: { nodeName } });
    for (const name of onSmall) await pods.pod(name, name, { ports: [{ containerPort: 80 }] }, at('small'));
    // Which of them it is depends on the order in which the kubelet finds them.
    expect(await eventOf(onSmall, 'FailedCreatePodSandBox')).toBe(
      'no addresses are left in the pod CIDRs of the node: delete Pods of it, or add a Node',
    );

    await addNode('extra', cordon);
    await eventOf('extra', 'CIDRNotAvailable');
    await pods.pod('on-extra', 'on-extra', { ports: [{ containerPort: 80 }] }, at('extra'));
    expect(await eventOf('on-extra', 'NetworkNotReady')).toBe(
      'network is not ready: container runtime network not ready: no pod CIDR is left: delete a Node, or choose a larger --cluster-cidr',
    );
    await goesOn();
    for (const name of onSmall) await pods.delete('pods', name);
    await pods.call('DELETE', '/api/v1/nodes/small');
    await answers('on-extra');
    await pods.delete('pods', 'on-extra');
    await pods.call('DELETE', '/api/v1/nodes/extra');
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
