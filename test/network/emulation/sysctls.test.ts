import { type ChildProcess, spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { forMakers } from '../support/for-makers.ts';
import { end, UpHome } from '../support/up-process.ts';

forMakers('sysctls of a Pod', (maker) => {
  const home = new UpHome(maker);
  let up: ChildProcess;
  beforeAll(async () => {
    up = await home.start(['--containers=processes', '--nodes=1']);
  });
  afterAll(async () => {
    await end(up, 'SIGKILL');
    home.remove();
  });

  const kubectl = (args: readonly string[], input = ''): string => {
    const options = { encoding: 'utf8', env: home.environment, input } as const;
    const { stdout, stderr, status } = spawnSync('kubectl', args, options);
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const pod = (name: string, sysctls: Readonly<Record<string, string>>): void => {
    const command = ['sh', '-c', 'cd /proc/sys; cat net/ipv4/ip_local_port_range kernel/shm_rmid_forced'];
    const spec = {
      restartPolicy: 'Never',
      securityContext: { sysctls: Object.entries(sysctls).map(([key, value]) => ({ name: key, value })) },
      containers: [{ name: 'main', image: 'busybox', command }],
    };
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
    kubectl(['apply', '-f', '-'], JSON.stringify(object));
  };
  const until = (name: string, path: string, value: string): void => {
    kubectl(['wait', `--for=jsonpath={${path}}=${value}`, `pod/${name}`, '--timeout=60s']);
  };
  const messagesOf = (name: string, reason: string): string => {
    const ofPod = `--field-selector=involvedObject.name=${name},reason=${reason}`;
    return kubectl(['get', 'events', ofPod, '-o=jsonpath={.items[*].message}']);
  };

  it('are set in the namespaces of the Pod alone', () => {
    // Old kernels refuse those of System V IPC in a user namespace.
    const ipc = maker === 'root' ? { 'kernel/shm_rmid_forced': '1' } : {};
    pod('set', { 'net.ipv4.ip_local_port_range': '20000 30000', ...ipc });
    until('set', '.status.phase', 'Succeeded');
    expect(kubectl(['logs', 'set'])).toBe(`20000\t30000\n${maker === 'root' ? 1 : 0}\n`);
    pod('other', {});
    until('other', '.status.phase', 'Succeeded');
    expect(kubectl(['logs', 'other'])).toBe('32768\t60999\n0\n');
  });

  it('that are not safe are refused by the kubelet', () => {
    pod('unsafe', { 'kernel.msgmax': '65536' });
    until('unsafe', '.status.reason', 'SysctlForbidden');
    expect(kubectl(['get', 'pod', 'unsafe', '-o=jsonpath={.status.phase}: {.status.message}'])).toBe(
      'Failed: Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted',
    );
  });

  it('that the kernel refuses keep containers from their start, and an Event says so', async () => {
    pod('bad-net', { 'net.ipv4.ip_local_port_range': 'none' });
    await expect
      .poll(() => messagesOf('bad-net', 'FailedCreatePodSandBox'))
      .toContain('write sysctl net/ipv4/ip_local_port_range: EINVAL: invalid argument, write');
    pod('bad-ipc', { 'kernel.shm_rmid_forced': 'none' });
    await expect
      .poll(() => messagesOf('bad-ipc', 'Failed'))
      .toContain('write sysctl kernel/shm_rmid_forced: ');
    until('bad-ipc', '.status.containerStatuses[0].state.terminated.reason', 'StartError');
  });
});
