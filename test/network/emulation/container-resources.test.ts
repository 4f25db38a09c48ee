import { type ChildProcess, spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cgroupsVersion } from '../support/gate.ts';
import { forMakers } from '../support/for-makers.ts';
import { end, UpHome } from '../support/up-process.ts';

const files = {
  1: {
    shares: '/sys/fs/cgroup/cpu/cpu.shares',
    quota: '/sys/fs/cgroup/cpu/cpu.cfs_quota_us',
    memory: '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  },
  2: {
    shares: '/sys/fs/cgroup/cpu.weight',
    quota: '/sys/fs/cgroup/cpu.max',
    memory: '/sys/fs/cgroup/memory.max',
  },
} as const;

forMakers('containers as processes have what their resources say', (maker) => {
  const home = new UpHome(maker);
  let up: ChildProcess;
  beforeAll(async () => {
    up = await home.start(['--containers=processes', '--nodes=1']);
    const spec = {
      terminationGracePeriodSeconds: 0,
      // Files of the kernel are there for all users.
      securityContext: { runAsUser: 1000 },
      containers: [
        {
          ...{ name: 'main', image: 'busybox', command: ['sleep', '1000'] },
          resources: { requests: { cpu: '200m' }, limits: { cpu: '500m', memory: '64Mi' } },
        },
      ],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'bounded' }, spec };
    kubectl(['apply', '-f', '-'], JSON.stringify(pod));
    kubectl(['wait', '--for=condition=Ready', 'pod/bounded']);
  });
  afterAll(async () => {
    await end(up, 'SIGTERM');
    expect(globSync(`/sys/fs/cgroup/**/servicenet-${up.pid}-*`)).toEqual([]);
    home.remove();
  });

  const kubectl = (args: readonly string[], input = ''): string => {
    const { stdout, stderr, status } = spawnSync('kubectl', args, {
      encoding: 'utf8',
      env: home.environment,
      input,
    });
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  const inside = (...command: readonly string[]): string => kubectl(['exec', 'bounded', '--', ...command]);
  const status = (path: string): string =>
    kubectl(['get', 'pod', 'bounded', '-o', `jsonpath={.status.containerStatuses[0]${path}}`]);
  const resize = (resources: object): void => {
    const patch = { spec: { containers: [{ name: 'main', resources }] } };
    kubectl(['patch', 'pod', 'bounded', '--subresource=resize', '-p', JSON.stringify(patch)]);
  };

  const version = maker === 'root' ? cgroupsVersion : undefined;
  const lacks = version === undefined ? ' (missing: cgroups)' : '';
  it.skipIf(version === undefined)(`in its cgroup, before and after a resize${lacks}`, async () => {
    const { shares, quota, memory } = files[version ?? 1];
    const isFirst = version === 1;
    const read = (): string => inside('cat', shares, quota, memory).split(/\s+/).join(' ');
    expect(read()).toBe(isFirst ? '204 50000 67108864' : '8 50000 100000 67108864');
    resize({ requests: { cpu: '400m' }, limits: { cpu: '1', memory: '128Mi' } });
    await expect.poll(read).toBe(isFirst ? '409 100000 134217728' : '16 100000 100000 134217728');
    await expect.poll(() => status('.resources.limits.memory')).toBe('128Mi');
    expect(status('.restartCount')).toBe('0');
  });

  it.skipIf(version === undefined)(`the Pod as a whole, too${lacks}`, async () => {
    const spec = {
      resources: { requests: { memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } },
      containers: [{ name: 'main', image: 'busybox', command: ['sleep', '1000'] }],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'whole' }, spec };
    kubectl(['apply', '-f', '-'], JSON.stringify(pod));
    kubectl(['wait', '--for=condition=Ready', 'pod/whole']);
    const uid = kubectl(['get', 'pod', 'whole', '-o', 'jsonpath={.metadata.uid}']);
    const file = version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
    const limit = (): readonly string[] =>
      globSync(`/sys/fs/cgroup/**/servicenet-${up.pid}-*/pod${uid}/${file}`).map((path) =>
        readFileSync(path, 'utf8').trim(),
      );
    expect(limit()).toEqual(['134217728']);
    const patch = { spec: { resources: { limits: { memory: '160Mi' } } } };
    kubectl(['patch', 'pod', 'whole', '--subresource=resize', '-p', JSON.stringify(patch)]);
    await expect.poll(limit).toEqual(['167772160']);
  });

  it('a program that ends at once has ended, and not failed', async () => {
    const containers = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => ({
      ...{ name: `c${n}`, image: 'busybox', command: ['true'] },
      resources: { limits: { cpu: '100m', memory: '64Mi' } },
    }));
    const spec = { restartPolicy: 'Never', containers };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'short' }, spec };
    kubectl(['apply', '-f', '-'], JSON.stringify(pod));
    const phase = (): string => kubectl(['get', 'pod', 'short', '-o', 'jsonpath={.status.phase}']);
    await expect.poll(phase).toMatch(/Succeeded|Failed/);
    const reasons = 'jsonpath={.status.containerStatuses[*].state.terminated.reason}';
    expect(kubectl(['get', 'pod', 'short', '-o', reasons])).toBe(containers.map(() => 'Completed').join(' '));
  });

  it('a limit below what it has is not set, and is said', async () => {
    resize({ requests: { memory: '1Ki' }, limits: { memory: '1Ki' } });
    const inProgress = 'jsonpath={.status.conditions[?(@.type=="PodResizeInProgress")].message}';
    await expect
      .poll(() => kubectl(['get', 'pod', 'bounded', '-o', inProgress]))
      .toMatch(/memory limit \(1024\) below current usage/);
    expect(status('.resources.limits.memory')).not.toBe('1Ki');
  });

  it('what runs beside it has no more memory than it has: it is started again', async () => {
    resize({ requests: { memory: '48Mi' }, limits: { memory: '48Mi' } });
    await expect.poll(() => status('.resources.limits.memory')).toBe('48Mi');
    const taking = `const all = []; setInterval(() => all.push(Buffer.alloc(1 << 20, 1)), 1)`;
    const { status: code } = spawnSync('kubectl', ['exec', 'bounded', '--', process.execPath, '-e', taking], {
      env: home.environment,
    });
    expect(code).not.toBe(0);
    await expect.poll(() => status('.lastState.terminated.reason')).toBe('OOMKilled');
    await expect.poll(() => status('.restartCount')).toBe('1');
  });
});
