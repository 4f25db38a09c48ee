import { claimOf } from '../../objects/pods.ts';
import { chmod, chown, lstat, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ContainerError, type WantedVolume } from '../../controllers/kubelet/container-runtime.ts';
import type { Container, Pod, VolumeMount } from '../../objects/types/core.generated.ts';
import { run } from '../../host/local-host.ts';
import { errorMessage } from '../../objects/status.ts';
import type { ClaimFolders } from './volume-folder.ts';
import { folderBytes, VolumeFolder } from './volume-folder.ts';
import type { ListedFile } from './built-in-commands.ts';
import type { Images } from './images.ts';
import { checkHostFile, checkHostPathType, type HostPathRules, notMade, sharedPath } from './host-paths.ts';
import { nestMounts, outerOf } from './subpath.ts';
import type { Mount } from './container-root.ts';
import { descriptorPath, openBelow } from './subpath.ts';

/** The folder of Pods' files: in a file system of the network, in memory, which ends with it. */
export const podsFolder = '/run/pods';

interface PodVolume {
  readonly folder: VolumeFolder;
  readonly hostPath: string | undefined;
  /** Whose files it has. Only those of the Pod are ours to write, and count for it. */
  readonly owner: 'pod' | 'claim' | 'node' | 'image';
  readonly isReadOnly: boolean;
}

/** The files of one Pod. */
export class PodFolder {
  readonly path: string;
  readonly #hostPaths: HostPathRules;
  readonly #claims: ClaimFolders;
  readonly #images: Pick<Images, 'folderOf'>;
  readonly #volumes = new Map<string, PodVolume>();
  /** File systems of their own. */
  readonly #mounted: string[] = [];

  constructor(uid: string, hostPaths: HostPathRules, claims: ClaimFolders, images: Pick<Images, 'folderOf'>) {
    this.path = join(podsFolder, uid);
    this.#hostPaths = hostPaths;
    this.#claims = claims;
    this.#images = images;
  }

  /**
   * Makes a volume or writes its files anew.
   *
   * @param group whose members may use it (`fsGroup`); not so for a folder of the node.
   * @throws the system's error.
   */
  async write(volume: WantedVolume, group?: number): Promise<void> {
    const {
      name,
      files,
      sizeLimit,
      hostPath,
      hostPathType = '',
      folder: shared,
      isReadOnly = false,
      image,
    } = volume;
    const known = this.#volumes.get(name);
    if (image !== undefined) {
      const folder = new VolumeFolder(this.#folderOf(image));
      this.#volumes.set(name, { folder, hostPath: undefined, owner: 'image', isReadOnly: true });
      return;
    }
    if (known === undefined && hostPath !== undefined) {
      await checkHostPathType(hostPath, hostPathType, this.#hostPaths);
    }
    const folder = known?.folder ?? new VolumeFolder(await this.#make(name, shared));
    if (known === undefined) {
      if (sizeLimit !== undefined) {
        await mountBy(['-t', 'tmpfs', '-o', `mode=1777,size=${sizeLimit}`, 'tmpfs', folder.path]);
        this.#mounted.push(folder.path);
      }
      if (group !== undefined) {
        await chown(folder.path, 0, group);
        await chmod(folder.path, (await stat(folder.path)).mode | 0o2770);
      }
      const owner = hostPath !== undefined ? 'node' : shared !== undefined ? 'claim' : 'pod';
      this.#volumes.set(name, { folder, hostPath, owner, isReadOnly });
    }
    if (files.length > 0 || (known !== undefined && shared === undefined)) await folder.write(files, group);
  }

  /** @throws {Error} for an image without a folder. */
  #folderOf(image: string): string {
    const folder = this.#images.folderOf(image);
    if (folder !== undefined) return folder;
    throw new Error(`no image is pulled: --image ${image}=/FOLDER gives "${image}" files of this machine`);
  }

  async #make(name: string, shared: string | undefined): Promise<string> {
    if (shared !== undefined) return await this.#claims.make(shared);
    const path = join(this.path, 'volumes', name);
    await mkdir(path, { recursive: true });
    // As the kubelet has it, whatever the umask is (pkg/volume/emptydir).
    await chmod(path, 0o777);
    return path;
  }

  /**
   * The mounts of a container: its volumes, and the files that every container has.
   *
   * @throws {ContainerError} for a mount without a volume.
   */
  async mounts(pod: Pod, container: Container, own: OwnFiles): Promise<readonly Mount[]> {
    const folder = join(this.path, 'containers', container.name);
    await mkdir(folder, { recursive: true });
    const files: readonly (readonly [path: string, name: string, text: string])[] = [
      ['/etc/hosts', 'hosts', own.hosts],
      ['/etc/resolv.conf', 'resolv.conf', own.resolvConf],
      ['/etc/hostname', 'hostname', `${own.hostname}\n`],
      [container.terminationMessagePath ?? '/dev/termination-log', 'termination-log', ''],
      ...[...own.executables].map(([path, script]) => [path, basename(path), script] as const),
    ];
    const mounts = new Map<string, Mount>();
    for (const [at, name, text] of files) {
      const from = join(folder, name);
      await writeFile(from, text, { mode: 0o755 });
      // Every user may leave a message (kuberuntime_container.go); the mode of a new file is masked.
      if (name === 'termination-log') await chmod(from, 0o666);
      mounts.set(at, { from, at, isFile: true, isReadOnly: name !== 'termination-log' && name !== 'hosts' });
    }
    if (own.shell !== undefined && !own.machineFiles.has('/bin/sh')) {
      mounts.set('/bin/sh', { from: own.shell, at: '/bin/sh', isFile: true, isReadOnly: true });
    }
    for (const mount of container.volumeMounts ?? []) {
      const volume = this.#volumes.get(mount.name);
      if (volume === undefined) {
        throw new ContainerError(
          'CreateContainerConfigError',
          `no volume "${mount.name}" in Pod ${pod.metadata.name ?? ''}`,
        );
      }
      const isOfFiles = (pod.spec.volumes ?? []).some(
        (each) =>
          each.name === mount.name &&
          each.emptyDir === undefined &&
          each.hostPath === undefined &&
          claimOf(pod, each) === undefined,
      );
      const { hostPath } = volume;
      const isOfMachine = hostPath !== undefined;
      const { root, path } = await this.#placeOf(volume);
      const isReadOnly = isOfFiles || volume.isReadOnly || (isOfMachine && !this.#hostPaths.isWritable);
      if (isOfMachine && !this.#hostPaths.isWritable && (await isFileAt(join(root, path))) === undefined) {
        const why = `hostPath ${hostPath} of volume "${mount.name}" ${notMade}`;
        throw new ContainerError('CreateContainerConfigError', why);
      }
      const subPath = join(path, mount.subPath ?? '');
      const from = subPath === '.' ? root : await this.#subPath(root, subPath, !isReadOnly, mount, container);
      const isFile = await isFileAt(from);
      if (isFile === undefined) {
        throw new ContainerError(
          'CreateContainerConfigError',
          `failed to prepare subPath for volumeMount "${mount.name}"`,
        );
      }
      if (isOfMachine && isFile) await checkHostFile(from, this.#hostPaths.isWritable);
      const at = mount.mountPath;
      const isSeenOnly = isReadOnly || mount.readOnly === true;
      const isShown = isOfMachine || volume.owner === 'image';
      mounts.set(at, { from, at, isFile, isReadOnly: isSeenOnly, isOfMachine: isShown });
    }
    for (const [at, from] of own.machineFiles) {
      // Volumes are before the files of an image.
      if (mounts.has(at) || outerOf(at, [...mounts.values()]) !== undefined) continue;
      mounts.set(at, { from, at, isFile: true, isReadOnly: true });
    }
    const place = (name: string): string =>
      join(this.path, 'subpaths', container.name, encodeURIComponent(name));
    return await nestMounts(
      [...mounts.values()],
      async (name, mount) => await this.#bind(mount, place(name)),
      async (from, to) => await mountBy(['--rbind', from, to]),
    );
  }

  /** Where the files of a volume are: at a path below a folder. @throws {ContainerError} for what no container may have. */
  async #placeOf({ folder, hostPath }: PodVolume): Promise<{ readonly root: string; readonly path: string }> {
    return hostPath === undefined
      ? { root: folder.path, path: '' }
      : await sharedPath(hostPath, this.#hostPaths);
  }

  /** @returns the place. @throws {Error} */
  async #bind(
    { from, isFile, isReadOnly }: Pick<Mount, 'from' | 'isFile' | 'isReadOnly'>,
    place: string,
  ): Promise<string> {
    await this.#unmount(place);
    await mkdir(isFile ? dirname(place) : place, { recursive: true });
    if (isFile) await writeFile(place, '');
    await mountBy(['--rbind', from, place]);
    this.#mounted.push(place);
    if (isReadOnly) await mountBy(['-o', 'remount,bind,ro', place]);
    return place;
  }

  /**
   * Mounts what is at a subPath to a place of its own, which no program of the Pod can exchange.
   *
   * @param makes whether a folder that is not there is made, as the kubelet does.
   * @throws {ContainerError} where it is not in the volume.
   */
  async #subPath(
    root: string,
    subPath: string,
    makes: boolean,
    { name, mountPath }: VolumeMount,
    container: Container,
  ): Promise<string> {
    const place = join(this.path, 'subpaths', container.name, encodeURIComponent(mountPath));
    try {
      const opened = await openBelow(root, subPath, makes);
      try {
        const isFile = !(await opened.stat()).isDirectory();
        return await this.#bind({ from: descriptorPath(opened), isFile, isReadOnly: false }, place);
      } finally {
        await opened.close();
      }
    } catch (error) {
      const why = `failed to prepare subPath for volumeMount "${name}" of container "${container.name}"`;
      throw new ContainerError('CreateContainerConfigError', `${why}: ${errorMessage(error)}`);
    }
  }

  async #unmount(path: string): Promise<void> {
    const at = this.#mounted.indexOf(path);
    if (at === -1) return;
    this.#mounted.splice(at, 1);
    await run('umount', ['-l', path]);
    await rm(path, { recursive: true, force: true });
  }

  /**
   * A file as a container sees it, where it is in one of its volumes.
   *
   * @throws the system's error.
   */
  async readFile(container: Container, wanted: string): Promise<Buffer> {
    const path = join('/', wanted);
    const found = await this.#volumePath(container, path);
    if (found === undefined) throw missing(path);
    return await readBelow(found.root, found.path);
  }

  /** True for a volume that shows a folder of the machine, also by way of a claim. */
  isOfMachine(volume: string): boolean {
    return this.#volumes.get(volume)?.hostPath !== undefined;
  }

  /**
   * A file of a volume for clients of the network, to which the machine is not shown.
   *
   * @throws the system's error: EACCES for a file of a folder of the machine.
   */
  async readDocument(container: Container, wanted: string): Promise<Buffer> {
    const path = join('/', wanted);
    if (this.isOfMachine(mountAt(container, path)?.name ?? '')) {
      throw Object.assign(new Error(`EACCES: read ${path}`), { code: 'EACCES' });
    }
    return await this.readFile(container, path);
  }

  /**
   * A folder as a container sees it: of its volumes, the files that it has beside them, and what leads to both.
   *
   * @param own the paths of these files.
   * @throws the system's error.
   */
  async list(container: Container, wanted: string, own: readonly string[]): Promise<readonly ListedFile[]> {
    const path = join('/', wanted).replace(/\/$/, '');
    const paths = [...own, ...(container.volumeMounts ?? []).map(({ mountPath }) => mountPath)];
    const below = paths.filter((each) => each.startsWith(`${path}/`));
    const listed = new Map<string, ListedFile>();
    for (const each of below) {
      const [name = '', ...rest] = each.slice(path.length + 1).split('/');
      const isFolder = rest.length > 0 || !own.includes(each);
      listed.set(name, { name, isFolder, size: 0 });
    }
    const found = await this.#volumePath(container, path);
    if (found !== undefined) {
      const opened = await openBelow(found.root, found.path, false);
      try {
        const file = await opened.stat();
        if (!file.isDirectory()) return [{ name: wanted, isFolder: false, size: file.size }];
        const folder = descriptorPath(opened);
        for (const { name } of await readdir(folder, { withFileTypes: true })) {
          const entry = await lstat(join(folder, name));
          listed.set(name, { name, isFolder: entry.isDirectory(), size: entry.size });
        }
      } finally {
        await opened.close();
      }
    } else if (own.includes(path)) return [{ name: wanted, isFolder: false, size: 0 }];
    else if (below.length === 0) throw missing(path);
    return [...listed.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Where a path is that leads into a volume of a container; undefined: it leads into none. */
  async #volumePath(
    container: Container,
    path: string,
  ): Promise<{ readonly root: string; readonly path: string } | undefined> {
    const mount = mountAt(container, path);
    const volume = this.#volumes.get(mount?.name ?? '');
    if (mount === undefined || volume === undefined) return undefined;
    const place = await this.#placeOf(volume);
    const inside = join(place.path, mount.subPath ?? '', path.slice(mount.mountPath.length));
    return { root: place.root, path: inside };
  }

  /** Bytes in each volume that has no file system of its own. */
  async usage(): Promise<ReadonlyMap<string, number>> {
    const usage = new Map<string, number>();
    for (const [name, { folder, owner }] of this.#volumes) {
      if (owner === 'pod' && !this.#mounted.includes(folder.path)) {
        usage.set(name, await folderBytes(folder.path));
      }
    }
    return usage;
  }

  /** Removes what containers had; logs stay. */
  async empty(): Promise<void> {
    for (const path of this.#mounted.splice(0)) await run('umount', ['-l', path]);
    this.#volumes.clear();
    await rm(join(this.path, 'volumes'), { recursive: true, force: true });
    await rm(join(this.path, 'containers'), { recursive: true, force: true });
    await rm(join(this.path, 'pages'), { recursive: true, force: true });
    await rm(join(this.path, 'subpaths'), { recursive: true, force: true });
  }

  async remove(): Promise<void> {
    await this.empty();
    await rm(this.path, { recursive: true, force: true });
  }
}

/** The innermost mount that a path leads into. */
function mountAt({ volumeMounts = [] }: Container, path: string): VolumeMount | undefined {
  return volumeMounts
    .filter(({ mountPath }) => path === mountPath || path.startsWith(`${mountPath.replace(/\/$/, '')}/`))
    .sort((a, b) => b.mountPath.length - a.mountPath.length)[0];
}

function missing(path: string): Error {
  return Object.assign(new Error(`open ${path}: no such file or directory`), { code: 'ENOENT' });
}

/** @throws {Error} with the words of `mount`. */
async function mountBy(args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await run('mount', args);
  if (exitCode !== 0) throw new Error(stderr.trim());
}

/** Files that the kubelet gives every container, and programs of ours. */
export interface OwnFiles {
  readonly hostname: string;
  readonly hosts: string;
  readonly resolvConf: string;
  /** Scripts, by their paths in the container. */
  readonly executables: ReadonlyMap<string, string>;
  /** Files of the machine that the container needs and would not see there, by their paths in it. */
  readonly machineFiles: ReadonlyMap<string, string>;
  /** The program for `/bin/sh` instead of the machine's; undefined: the machine's. */
  readonly shell: string | undefined;
}

/** Bytes of a file that programs of ours read as a whole. */
const maxReadBytes = 16 * 1024 * 1024;

/** A file below a folder that programs of the Pod write to. @throws the system's error. */
async function readBelow(root: string, path: string): Promise<Buffer> {
  const file = await openBelow(root, path, false);
  try {
    const stat = await file.stat();
    // A pipe or a device has no content, and one of a folder is an error by itself.
    const refused = stat.isFile() || stat.isDirectory() ? undefined : 'EACCES';
    const code = stat.isFile() && stat.size > maxReadBytes ? 'EFBIG' : refused;
    if (code !== undefined) throw Object.assign(new Error(`${code}: read ${path}`), { code });
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function isFileAt(path: string): Promise<boolean | undefined> {
  try {
    const stat = await lstat(path);
    return !stat.isDirectory() && !stat.isSymbolicLink() ? true : stat.isSymbolicLink();
  } catch {
    return undefined;
  }
}
