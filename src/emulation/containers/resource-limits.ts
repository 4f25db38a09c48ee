/**
 * What bounds the memory and the processor time of containers: where `up` runs as root, cgroups of either version
 * (cgroups(7)), in the layout of kubelet's cgroupfs driver (`servicenet-PID-N/podUID/CONTAINER`); elsewhere a watch of their
 * memory alone.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { podResources } from '../../objects/pods.ts';
import { quantityIn } from '../../objects/formats/quantity.ts';
import type { Container, Pod, ResourceRequirements } from '../../objects/types/core.generated.ts';
import type { MountStep } from './container-root.ts';
import { quoted } from './sandbox-command.ts';

/** The controllers that are used. */
const controllers = ['cpu', 'memory'] as const;
type Controller = (typeof controllers)[number];

/** The folders of the cgroup file systems in which this process may make its own: in version 2, one for all controllers. */
export type CgroupFolders =
  | { readonly version: 1; readonly folders: Readonly<Record<Controller, string>> }
  | { readonly version: 2; readonly folder: string };

/**
 * Finds them.
 *
 * @param mounts the text of `/proc/self/mountinfo`.
 * @param own that of `/proc/self/cgroup`. In version 1 the new ones are below those of this process, whose limits they keep;
 *   in version 2 below the root, since a cgroup with processes can have no others with controllers.
 * @returns undefined where the machine has none.
 */
export function cgroupFolders(mounts: string, own: string): CgroupFolders | undefined {
  const found = new Map<string, string>();
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root = '', at = ''] = before.split(' ');
    const [type, , options = ''] = after.split(' ');
    if (type === 'cgroup2' && at === '/sys/fs/cgroup') return { version: 2, folder: at };
    if (type !== 'cgroup') continue;
    for (const controller of controllers) {
      if (!options.split(',').includes(controller)) continue;
      const [path = '/'] = own
        .split('\n')
        .map((each) => each.split(':'))
        .flatMap(([, names = '', where = '']) => (names.split(',').includes(controller) ? [where] : []));
      const below = relative(root, path);
      found.set(controller, below.startsWith('..') ? at : join(at, below));
    }
  }
  const [cpu, memory] = [found.get('cpu'), found.get('memory')];
  return cpu === undefined || memory === undefined ? undefined : { version: 1, folders: { cpu, memory } };
}

/** Microseconds of a period of processor time. */
const periodUs = 100_000;

/** A file of a cgroup and what is written there, in its order. */
export interface CgroupFile {
  readonly controller: Controller;
  readonly name: string;
  readonly value: string;
}

/**
 * The files that bound a cgroup to some resources (pkg/kubelet/cm/helpers_linux.go `MilliCPUToShares`, `MilliCPUToQuota`; for
 * version 2, KEP-2254).
 */
export function cgroupFiles(
  version: 1 | 2,
  { requests, limits }: Pick<ResourceRequirements, 'requests' | 'limits'>,
): readonly CgroupFile[] {
  const milli = (quantity: string | undefined): number | undefined =>
    quantity === undefined ? undefined : Number(quantityIn(quantity, 'thousandths'));
  const cpuLimit = milli(limits?.['cpu']);
  const wanted = milli(requests?.['cpu']) ?? cpuLimit ?? 0;
  const shares = Math.min(Math.max(Math.floor((wanted * 1024) / 1000), 2), 262_144);
  const quotaUs =
    cpuLimit === undefined || cpuLimit === 0
      ? undefined
      : Math.max(Math.floor((cpuLimit * periodUs) / 1000), 1000);
  const memory = memoryLimitOf(limits);
  const cpu = (name: string, value: string): CgroupFile => ({ controller: 'cpu', name, value });
  if (version === 1) {
    return [
      cpu('cpu.shares', String(shares)),
      cpu('cpu.cfs_period_us', String(periodUs)),
      cpu('cpu.cfs_quota_us', String(quotaUs ?? -1)),
      { controller: 'memory', name: 'memory.limit_in_bytes', value: String(memory ?? -1) },
    ];
  }
  return [
    cpu('cpu.weight', String(1 + Math.floor(((shares - 2) * 9999) / 262_142))),
    cpu('cpu.max', `${quotaUs ?? 'max'} ${periodUs}`),
    { controller: 'memory', name: 'memory.max', value: String(memory ?? 'max') },
  ];
}

/** Bytes; undefined: no limit. */
export function memoryLimitOf(limits: ResourceRequirements['limits']): number | undefined {
  const limit = limits?.['memory'];
  return limit === undefined ? undefined : Number(quantityIn(limit, 'units'));
}

/** The cgroup of a container. */
export class ContainerCgroup {
  readonly #version: 1 | 2;
  /** By controller: its folders. In version 2 they are the same. */
  readonly #folders: ReadonlyMap<Controller, string>;
  /** How often the kernel had ended a process of it before: its folder may be that of the attempt before. */
  readonly #endedBefore: Promise<number>;

  constructor(version: 1 | 2, folders: ReadonlyMap<Controller, string>) {
    this.#version = version;
    this.#folders = folders;
    this.#endedBefore = this.#outOfMemoryEnds();
  }

  /** The command line before a program that is to be in it. */
  get argv(): readonly string[] {
    const enter = [...new Set(this.#folders.values())].map(
      (folder) => `echo 0 >${quoted(join(folder, 'cgroup.procs'))}`,
    );
    return ['sh', '-c', `${enter.join(' && ')} && exec "$@"`, 'sh'];
  }

  /** How the container sees it. */
  get steps(): readonly MountStep[] {
    const top = '/sys/fs/cgroup';
    // Parents that are made by the way are for root alone.
    const parents = ['/sys', '/sys/fs', top].map((at): MountStep => ({ kind: 'dir', at }));
    const binds = [...this.#folders].map(([controller, from]): MountStep => ({
      ...{ kind: 'bind', from, at: this.#version === 1 ? `${top}/${controller}` : top, isReadOnly: true },
    }));
    return [...parents, ...(this.#version === 1 ? binds : binds.slice(0, 1))];
  }

  /** Sets its limits when the container has begun. @throws the system's error. */
  async begun(resources: ResourceRequirements): Promise<void> {
    await writeFiles(this.#folders, cgroupFiles(this.#version, resources));
  }

  /** Sets other limits. @throws {Error} where it has more memory than that, or the system's error. */
  async set(name: string, resources: ResourceRequirements): Promise<void> {
    const limit = memoryLimitOf(resources.limits);
    const used = Number(
      await this.#read('memory', this.#version === 1 ? 'memory.usage_in_bytes' : 'memory.current'),
    );
    if (limit !== undefined && used > limit) throw new Error(belowUsage(name, limit, used));
    await this.begun(resources);
  }

  /** Whether the kernel has ended a process of it for want of memory; false when it is removed. */
  async wasOutOfMemory(): Promise<boolean> {
    return (await this.#outOfMemoryEnds()) > (await this.#endedBefore);
  }

  async #outOfMemoryEnds(): Promise<number> {
    try {
      const text = await this.#read('memory', this.#version === 1 ? 'memory.oom_control' : 'memory.events');
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    } catch {
      return 0;
    }
  }

  /** Its processes have ended. */
  async remove(): Promise<void> {
    for (const folder of new Set(this.#folders.values())) await removeFolder(folder);
  }

  async #read(controller: Controller, name: string): Promise<string> {
    return await readFile(join(this.#folders.get(controller) ?? '', name), 'latin1');
  }
}

/** Why a limit of memory is not set (kuberuntime_manager.go `validateMemoryResizeAction`). */
export function belowUsage(name: string, limit: number, used: number): string {
  return `cannot decrease memory limits: attempting to set container "${name}" memory limit (${limit}) below current usage (${used})`;
}

/** Those that this process makes. */
export class Cgroups {
  readonly #places: CgroupFolders;
  /** The folder of all of them. */
  readonly #name: string;

  private constructor(places: CgroupFolders, name: string) {
    this.#places = places;
    this.#name = name;
  }

  /** @returns undefined where this process may make none, after a line in the log. */
  static async open(name: string, log: Logger): Promise<Cgroups | undefined> {
    try {
      const places = await findFolders();
      if (places === undefined) return undefined;
      const made = new Cgroups(places, name);
      await made.#make([name]);
      return made;
    } catch (error) {
      // It is not root, or the file system is read-only.
      log.debug(
        { err: error },
        'containers have no cgroups: their memory is watched, and they may use all processors',
      );
      return undefined;
    }
  }

  /**
   * Makes that of a container, with the limits of its `resources`, but for that of processors: what begins the container
   * would take long with it.
   *
   * @throws the system's error.
   */
  async container(
    pod: Pod,
    { name, resources = {} }: Pick<Container, 'name' | 'resources'>,
  ): Promise<ContainerCgroup> {
    await this.setPod(pod);
    const folders = await this.#make([this.#name, podName(pod), name]);
    const { version } = this.#places;
    const { cpu: _, ...limits } = resources.limits ?? {};
    await writeFiles(folders, cgroupFiles(version, { ...resources, limits }));
    if (version === 2)
      await writeFiles(folders, [{ controller: 'memory', name: 'memory.oom.group', value: '1' }]);
    return new ContainerCgroup(version, folders);
  }

  /** Sets the share of a Pod, and the limits that it has as a whole. @throws the system's error. */
  async setPod(pod: Pod, limits = pod.spec.resources?.limits ?? {}): Promise<void> {
    const folders = await this.#make([this.#name, podName(pod)]);
    const cpu = podResources(pod, 'requests').get('cpu');
    const requests = cpu === undefined ? {} : { cpu: `${cpu}n` };
    await writeFiles(folders, cgroupFiles(this.#places.version, { requests, limits }));
  }

  /** The containers of the Pod have ended. */
  async removePod(pod: Pod): Promise<void> {
    for (const top of tops(this.#places)) await removePodFolder(join(top, this.#name, podName(pod)));
  }

  /** @returns the last folder, by controller. */
  async #make(path: readonly string[]): Promise<ReadonlyMap<Controller, string>> {
    if (this.#places.version === 1) {
      const { folders } = this.#places;
      for (const controller of controllers)
        await mkdir(join(folders[controller], ...path), { recursive: true });
      return new Map(controllers.map((each) => [each, join(folders[each], ...path)]));
    }
    let at = this.#places.folder;
    for (const name of path) {
      await writeFile(join(at, 'cgroup.subtree_control'), controllers.map((each) => `+${each}`).join(' '));
      at = join(at, name);
      await mkdir(at, { recursive: true });
    }
    return new Map(controllers.map((each) => [each, at]));
  }
}

/** Removes those of processes that have ended, by the names of their folders. */
export async function removeCgroups(isMeant: (name: string) => boolean): Promise<void> {
  const places = await findFolders();
  for (const top of places === undefined ? [] : tops(places)) {
    for (const folder of (await foldersIn(top)).filter((each) => isMeant(basename(each)))) {
      for (const pod of await foldersIn(folder)) await removePodFolder(pod);
      await removeFolder(folder);
    }
  }
}

/** With those of containers that could not begin. */
async function removePodFolder(folder: string): Promise<void> {
  for (const container of await foldersIn(folder)) await removeFolder(container);
  await removeFolder(folder);
}

async function findFolders(): Promise<CgroupFolders | undefined> {
  if (!existsSync('/proc/self/cgroup')) return undefined;
  return cgroupFolders(
    await readFile('/proc/self/mountinfo', 'utf8'),
    await readFile('/proc/self/cgroup', 'utf8'),
  );
}

function tops(places: CgroupFolders): readonly string[] {
  return places.version === 1 ? controllers.map((each) => places.folders[each]) : [places.folder];
}

/** None of one that is not there, or not to be seen: that of a namespace around this one. */
async function foldersIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

function podName({ metadata }: Pod): string {
  return `pod${metadata.uid ?? ''}`;
}

async function writeFiles(
  folders: ReadonlyMap<Controller, string>,
  files: readonly CgroupFile[],
): Promise<void> {
  for (const { controller, name, value } of files)
    await writeFile(join(folders.get(controller) ?? '', name), value);
}

/** Tries, and milliseconds between them: the kernel keeps a process that has ended for a moment. */
const removalTries = 20;
const removalPauseMs = 50;

/** Removes a cgroup that has no others. One that is in use after a second stays. */
async function removeFolder(folder: string): Promise<void> {
  for (let tries = 0; tries < removalTries; tries++) {
    try {
      await rmdir(folder);
      return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EBUSY')) return;
      await delay(removalPauseMs);
    }
  }
}

/** Milliseconds between two looks: near the limit, at the start, and otherwise. */
const nearMs = 100;
const farMs = 500;
const startMs = 2000;
/** Part of the limit below which a container is far from it. */
const farPart = 0.5;
/** Bytes of a page: of Linux on amd64, and on arm64 as distributions build it. */
const pageBytes = 4096;

/**
 * Calls back once when a container has more memory than its limit.
 *
 * @param part of the limit that it has: above 1, too much. Resolves.
 * @param signal ends the watch.
 */
export function watchMemory(part: () => Promise<number>, signal: AbortSignal, onExceeded: () => void): void {
  const begun = performance.now();
  const look = async (): Promise<void> => {
    const present = await part();
    if (signal.aborted) return;
    if (present > 1) {
      onExceeded();
      return;
    }
    const isNear = present > farPart || performance.now() - begun < startMs;
    plan(isNear ? nearMs : farMs);
  };
  const plan = (ms: number): void => {
    const timer = setTimeout(() => void look(), ms);
    timer.unref();
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  };
  plan(nearMs);
}

/**
 * Bytes of memory that some processes, and those below them, have of their own: without what they share, such as programs
 * and libraries.
 */
export async function memoryOfAll(pids: readonly number[]): Promise<number> {
  let used = 0;
  for (const pid of pids) used += await memoryOf(pid);
  return used;
}

/** Bytes of a process and those below it; 0 for one that has ended (proc(5): `statm`, `children`). */
async function memoryOf(pid: number): Promise<number> {
  try {
    const [, resident = 0, shared = 0] = (await readFile(`/proc/${pid}/statm`, 'latin1'))
      .split(' ')
      .map(Number);
    let sum = (resident - shared) * pageBytes;
    // Each thread has children of its own.
    for (const thread of await readdir(`/proc/${pid}/task`)) {
      const children = await readFile(`/proc/${pid}/task/${thread}/children`, 'latin1');
      for (const child of children.split(' ').filter((each) => each !== ''))
        sum += await memoryOf(Number(child));
    }
    return sum;
  } catch {
    return 0;
  }
}
