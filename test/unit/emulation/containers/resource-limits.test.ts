import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import {
  cgroupFiles,
  cgroupFolders,
  memoryOfAll,
  watchMemory,
} from '../../../../src/emulation/containers/resource-limits.ts';

const line = (root: string, at: string, type: string, options: string): string =>
  `30 23 0:26 ${root} ${at} rw,nosuid shared:9 - ${type} ${type} rw,${options}`;

describe('cgroupFolders', () => {
  it('are those of this process with version 1', () => {
    const mounts = [
      line('/', '/', 'overlay', 'lowerdir=/x'),
      line('/', '/sys/fs/cgroup/cpu,cpuacct', 'cgroup', 'cpu,cpuacct'),
      line('/', '/sys/fs/cgroup/memory', 'cgroup', 'memory'),
      line('/', '/sys/fs/cgroup/unified', 'cgroup2', 'nsdelegate'),
    ].join('\n');
    const own = '4:memory:/system/job\n2:cpu,cpuacct:/\n0::/user.slice\n';
    expect(cgroupFolders(mounts, own)).toEqual({
      version: 1,
      folders: { cpu: '/sys/fs/cgroup/cpu,cpuacct', memory: '/sys/fs/cgroup/memory/system/job' },
    });
  });

  it('are where they are mounted in a container, which sees its own path alone', () => {
    const mounts = ['cpu', 'memory']
      .map((name) => line('/docker/1', `/sys/fs/cgroup/${name}`, 'cgroup', name))
      .join('\n');
    expect(cgroupFolders(mounts, '2:cpu:/docker/1\n1:memory:/docker/1/below\n')).toEqual({
      version: 1,
      folders: { cpu: '/sys/fs/cgroup/cpu', memory: '/sys/fs/cgroup/memory/below' },
    });
  });

  it('are at the top with version 2', () => {
    const mounts = line('/', '/sys/fs/cgroup', 'cgroup2', 'nsdelegate');
    expect(cgroupFolders(mounts, '0::/user.slice\n')).toEqual({ version: 2, folder: '/sys/fs/cgroup' });
  });

  it('are none without both controllers', () => {
    expect(cgroupFolders(line('/', '/sys/fs/cgroup/cpu', 'cgroup', 'cpu'), '2:cpu:/\n')).toBeUndefined();
    expect(cgroupFolders('', '')).toBeUndefined();
  });
});

/** What Kubernetes writes: pkg/kubelet/cm/helpers_linux_test.go, and the e2e tests of resizing. */
describe('cgroupFiles', () => {
  const written = (version: 1 | 2, requests: Record<string, string>, limits: Record<string, string>) =>
    cgroupFiles(version, { requests, limits }).map(({ name, value }) => `${name}=${value}`);

  it.each([
    [{}, {}, 'cpu.shares=2', 'cpu.cfs_quota_us=-1', 'memory.limit_in_bytes=-1'],
    [{ cpu: '20m' }, {}, 'cpu.shares=20', 'cpu.cfs_quota_us=-1', 'memory.limit_in_bytes=-1'],
    [{ cpu: '1' }, { cpu: '5m' }, 'cpu.shares=1024', 'cpu.cfs_quota_us=1000', 'memory.limit_in_bytes=-1'],
    [
      {},
      { cpu: '1500m', memory: '35Mi' },
      'cpu.shares=1536',
      'cpu.cfs_quota_us=150000',
      'memory.limit_in_bytes=36700160',
    ],
    [{ cpu: '1k' }, {}, 'cpu.shares=262144', 'cpu.cfs_quota_us=-1', 'memory.limit_in_bytes=-1'],
  ])('of version 1 for %j and %j', (requests, limits, shares, quota, memory) => {
    expect(written(1, requests, limits)).toEqual([shares, 'cpu.cfs_period_us=100000', quota, memory]);
  });

  it.each([
    [{}, {}, 'cpu.weight=1', 'cpu.max=max 100000', 'memory.max=max'],
    [{ cpu: '1' }, { cpu: '30m' }, 'cpu.weight=39', 'cpu.max=3000 100000', 'memory.max=max'],
    [{ cpu: '1k' }, { memory: '1Gi' }, 'cpu.weight=10000', 'cpu.max=max 100000', 'memory.max=1073741824'],
  ])('of version 2 for %j and %j', (requests, limits, ...files) => {
    expect(written(2, requests, limits)).toEqual(files);
  });
});

const mebibyte = 1024 * 1024;
let child: ChildProcess | undefined;

afterEach(() => child?.kill('SIGKILL'));

/** A shell whose child has so much memory, writes a line, and ends with its standard input. */
async function taking(mebibytes: number): Promise<ChildProcess> {
  const program = `const all = Buffer.alloc(${mebibytes * mebibyte}, 1); console.log(all.length); process.stdin.resume()`;
  // The second command keeps the shell.
  const script = `"${process.execPath}" -e '${program}'; true`;
  const started = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  child = started;
  await once(started.stdout, 'data');
  return started;
}

describe('the memory of a container', () => {
  it('is that of all its processes', async () => {
    const { pid } = await taking(200);
    const exceeded = Promise.withResolvers<string>();
    const ending = new AbortController();
    watchMemory(
      async () => (await memoryOfAll(pid === undefined ? [] : [pid])) / (150 * mebibyte),
      ending.signal,
      () => exceeded.resolve('exceeded'),
    );
    expect(await exceeded.promise).toBe('exceeded');
  });

  it('may be as much as its limit, and nothing is asked of a container that has ended', async () => {
    const started = await taking(20);
    const ending = new AbortController();
    let isExceeded = false;
    let looks = 0;
    const lookedTwice = Promise.withResolvers<undefined>();
    const part = async (): Promise<number> => {
      if (++looks === 3) lookedTwice.resolve(undefined);
      return (await memoryOfAll([started.pid ?? 0])) / (400 * mebibyte);
    };
    watchMemory(part, ending.signal, () => (isExceeded = true));
    await lookedTwice.promise;
    ending.abort();
    started.stdin?.end();
    await once(started, 'exit');
    expect(isExceeded).toBe(false);
    expect(looks).toBe(3);
  });
});
