import { existsSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Short: in the part of a period in which all workers run, clients have more to do than on the average. */
const periodUs = 20_000;

const isUnified = existsSync('/sys/fs/cgroup/cgroup.controllers');
const root = isUnified ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu';

/** Processes that get what they may have, whatever else the machine does. */
export interface Group {
  add(pid: number): Promise<void>;
  /** Ends it. This process leaves it; others must have ended. */
  remove(): Promise<void>;
}

/**
 * Makes a cgroup for the CPU, of version 2 or 1.
 *
 * @param share of a core that each of its processes together may have; undefined: as much as there is.
 * @throws {Error} where this machine or user may not.
 */
export async function makeGroup(name: string, share?: number): Promise<Group> {
  const folder = join(root, `servicenet-bench-${name}`);
  await mkdir(folder);
  const quotaUs = Math.round((share ?? 0) * periodUs);
  const weight = isUnified ? { 'cpu.weight': 10_000 } : { 'cpu.shares': 262_144 };
  const quota = isUnified
    ? { 'cpu.max': `${quotaUs} ${periodUs}` }
    : { 'cpu.cfs_period_us': periodUs, 'cpu.cfs_quota_us': quotaUs };
  for (const [file, value] of Object.entries({ ...weight, ...(share === undefined ? {} : quota) })) {
    await writeFile(join(folder, file), String(value));
  }
  const pids = new Set<number>();
  return {
    async add(pid) {
      pids.add(pid);
      await writeFile(join(folder, 'cgroup.procs'), String(pid));
    },
    async remove() {
      if (pids.has(process.pid)) await writeFile(join(root, 'cgroup.procs'), String(process.pid));
      await rmdir(folder);
    },
  };
}

/** Why no cgroup can be made; empty: one can. */
export async function missingGroups(): Promise<string> {
  try {
    const group = await makeGroup(`tried-${process.pid}`, 0.5);
    await group.remove();
    return '';
  } catch (error) {
    return `cgroups for the CPU (${error instanceof Error ? error.message : String(error)})`;
  }
}
