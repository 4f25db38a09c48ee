import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { PodNetwork } from '../machines/namespace-sandboxes.ts';

/**
 * A step, in order, in making the root of a container: the machine's file system, which stays as it is, with the
 * container's own files in it.
 */
export type MountStep =
  | { readonly kind: 'symlink'; readonly to: string; readonly at: string }
  | { readonly kind: 'bind'; readonly from: string; readonly at: string; readonly isReadOnly: boolean }
  | { readonly kind: 'tmpfs' | 'dev' | 'proc' | 'dir'; readonly at: string };

/** A file or a folder that appears at a path. */
export interface Mount {
  readonly from: string;
  readonly at: string;
  readonly isReadOnly: boolean;
  readonly isFile: boolean;
  /** It is one of the machine, and not a volume or a file of the Pod. */
  readonly isOfMachine?: boolean;
}

/**
 * A folder of the machine as a container sees it. In an overlay, a socket or a pipe is another one than that of the
 * machine: nobody listens there.
 */
export interface Overlay {
  /**
   * `changeable`: the container may change all, and its changes are in `layer`, or it does not start; `seen`: with the
   * names of `layer`, or empty where the kernel refuses the layer; `wanted`: the same, or the container does not start;
   * `shared`: no overlay, the container changes the machine's own.
   */
  readonly kind: 'changeable' | 'seen' | 'wanted' | 'shared';
  readonly layer: string;
  /** An empty folder: for the kernel, in the file system of `layer`, or for the folder on its own. */
  readonly work: string;
  readonly of: string;
  readonly at: string;
}

export interface Root {
  readonly overlays: readonly Overlay[];
  readonly steps: readonly MountStep[];
  readonly isWritable: boolean;
}

/** Folders that each container has of its own. */
const ownFolders: ReadonlySet<string> = new Set(['proc', 'dev', 'run', 'tmp', 'sys']);
/** Empty at first, and in memory. */
const scratchFolders: readonly string[] = ['/tmp', '/run', '/dev/shm'];
/**
 * What of the machine a container sees: `whole`: all of its files; `programs`: programs and what they need of `/usr` and
 * `/etc`, and nothing of its users, of its services and of what is mounted elsewhere.
 */
export type MachineView = 'whole' | 'programs';

/** Folders at the top that have programs, libraries and their data. */
const programFolders: ReadonlySet<string> = new Set([
  ...['bin', 'lib', 'lib32', 'lib64', 'libx32', 'nix', 'sbin', 'usr'],
]);
/** What programs need of `/etc`, where the machine has it. */
const programSettings: readonly string[] = [
  ...['alternatives', 'ca-certificates', 'fonts', 'inputrc', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d'],
  ...[
    'localtime',
    'mime.types',
    'os-release',
    'perl',
    'pki/ca-trust/extracted',
    'pki/tls/certs',
    'protocols',
  ],
  ...['services', 'ssl/cert.pem', 'ssl/certs', 'ssl/openssl.cnf', 'terminfo', 'timezone'],
];
/** Files that every image has. */
const imageFiles: ReadonlyMap<string, string> = new Map([
  [
    'etc/passwd',
    'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  ],
  ['etc/group', 'root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n'],
  ['etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n'],
]);
/** Folders that every image has, with their modes. */
const imageFolders: readonly (readonly [path: string, mode: number])[] = [
  ...['etc', 'home', 'media', 'mnt', 'opt', 'srv', 'var', 'var/cache', 'var/lib', 'var/log', 'var/spool'].map(
    (path) => [path, 0o755] as const,
  ),
  ['root', 0o700],
  ['var/tmp', 0o1777],
];

/** Who owns what a user of another namespace owns (user_namespaces(7), `overflowuid`). */
const unknownUser = 65_534;

/** Folders of the machine with a layer for each container, which may write to it. */
const layeredFolders: ReadonlySet<string> = new Set(['etc', 'home', 'opt', 'root', 'srv', 'usr', 'var']);

/** The folder of the files that a container has written to folders of the machine. @param folder of the container. */
export function writtenIn(folder: string): string {
  return join(folder, 'layer');
}

/** Whether a file of the machine is in a folder that containers see. A folder shows no other file system that is below it. */
export function isSeen(view: MachineView, path: string): boolean {
  const [top = ''] = path.slice(1).split('/');
  const deviceOf = (of: string): number => statSync(of).dev;
  return isShown(view, top) && deviceOf(path) === deviceOf(`/${top}`);
}

function isShown(view: MachineView, top: string): boolean {
  return !ownFolders.has(top) && (view === 'whole' || programFolders.has(top));
}

/** How a root is made. */
export interface RootOptions {
  /** Of the container, empty. */
  readonly folder: string;
  readonly mounts: readonly Mount[];
  /** What the container writes is its own, and is lost with it. */
  readonly isWritable: boolean;
  readonly view: MachineView;
  /** Those that the container sees. */
  readonly cgroups: readonly MountStep[];
}

/** Plans a root, and makes the names that are mounted over and that this machine does not have. @throws the system's error. */
export async function makeRoot({ folder, mounts, isWritable, view, cgroups }: RootOptions): Promise<Root> {
  const image = view === 'whole' ? noImage : await makeImage(writtenIn(folder), isWritable);
  const resolved = mounts.map((mount) => ({ ...mount, at: resolveMount(mount.at, view) }));
  /** Those of the top folders by their path, others by where they are mounted. */
  const overlays = new Map<string, Overlay>();
  const overlayOf = async (
    of: string,
    name: string,
    kind: Overlay['kind'],
    inside = folder,
  ): Promise<string> => {
    const layer = join(writtenIn(inside), name);
    const overlay = { kind, layer, of, work: join(inside, 'work', name), at: join(inside, 'root', name) };
    overlays.set(inside === folder ? of : overlay.at, overlay);
    for (const path of [layer, overlay.work, overlay.at]) await mkdir(path, { recursive: true });
    return overlay.at;
  };
  const entries = readdirSync('/', { withFileTypes: true }).filter(({ name }) => isShown(view, name));
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    const isChangeable = isWritable && layeredFolders.has(name);
    await overlayOf(`/${name}`, name, isChangeable ? 'changeable' : 'seen');
    if (!isChangeable) continue;
    for (const of of [`/${name}`, ...(name === 'usr' ? ['/usr/local'] : [])]) {
      await takeFolders(of, join(writtenIn(folder), of));
    }
  }
  for (const { at, isFile } of resolved) {
    const [top = ''] = at.slice(1).split('/');
    const isOwn = ownFolders.has(top) || at === `/${top}` || !overlays.has(`/${top}`);
    const isThere = (): boolean => existsSync(at) && !lstatSync(at).isSymbolicLink();
    if (!image.tops.has(top) && (isOwn || isThere())) continue;
    await makePlace(join(writtenIn(folder), at), isFile);
  }
  const steps = entries.flatMap((entry): MountStep[] => {
    const at = `/${entry.name}`;
    const overlay = overlays.get(at);
    if (overlay !== undefined) {
      return [{ kind: 'bind', from: overlay.at, at, isReadOnly: overlay.kind !== 'changeable' }];
    }
    return entry.isSymbolicLink() ? [{ kind: 'symlink', to: readlinkSync(at), at }] : [];
  });
  const hasTop = (top: string): boolean =>
    image.tops.has(top) || (isShown(view, top) && existsSync(`/${top}`));
  const binds: MountStep[] = [];
  // A mount inside of another comes after it.
  for (const { from, at, isReadOnly, isFile, isOfMachine } of resolved.toSorted(byLength)) {
    const kind = isReadOnly ? 'wanted' : 'shared';
    const isFolderOfMachine = isOfMachine === true && !isFile;
    const inside = join(folder, 'machine');
    const seen = isFolderOfMachine ? await overlayOf(from, String(binds.length), kind, inside) : from;
    binds.push({ kind: 'bind', from: seen, at, isReadOnly });
  }
  return {
    isWritable,
    overlays: [...overlays.values()],
    steps: [
      ...steps,
      ...image.steps,
      { kind: 'dev', at: '/dev' },
      { kind: 'proc', at: '/proc' },
      ...kernelFiles().map((at): MountStep => ({ kind: 'bind', from: at, at, isReadOnly: true })),
      ...cgroups,
      ...scratchFolders.map((at): MountStep => ({ kind: 'tmpfs', at })),
      ...parentsOf(resolved, hasTop).map((at): MountStep => ({ kind: 'dir', at })),
      ...binds,
    ],
  };
}

/** The folders at the top that a container has instead of the machine's, and how they come there. */
interface ImageFolders {
  readonly tops: ReadonlySet<string>;
  readonly steps: readonly MountStep[];
}

const noImage: ImageFolders = { tops: new Set(), steps: [] };

/** Makes what a small image has. @param layer where; it is empty. @throws the system's error. */
async function makeImage(layer: string, isWritable: boolean): Promise<ImageFolders> {
  for (const [path, mode] of imageFolders) {
    await mkdir(join(layer, path), { recursive: true });
    await chmod(join(layer, path), mode);
  }
  await symlink('/run', join(layer, 'var/run'));
  for (const [path, text] of imageFiles) await writeFile(join(layer, path), text);
  const tops = [...new Set(imageFolders.map(([path]) => path.split('/')[0] ?? ''))];
  const steps: MountStep[] = tops.map((top) => ({
    ...{ kind: 'bind', from: join(layer, top), at: `/${top}`, isReadOnly: !isWritable },
  }));
  for (const name of programSettings) {
    const at = join('/etc', name);
    // Without links: one may lead to what a container does not have.
    const from = existsSync(at) ? realpathSync(at) : '';
    const found = from === '' ? undefined : statSync(from);
    if (found === undefined || !(found.isFile() || found.isDirectory())) continue;
    await makePlace(join(layer, at), found.isFile());
    steps.push({ kind: 'bind', from, at, isReadOnly: true });
  }
  return { tops: new Set(tops), steps };
}

/**
 * Makes the folders in a folder of the machine in a layer, where they are those of users whom the namespace does not know:
 * root of a container could not write there otherwise. Files in them stay those users'.
 */
async function takeFolders(of: string, layer: string): Promise<void> {
  if (!isReadable(of)) return;
  for (const entry of readdirSync(of, { withFileTypes: true })) {
    const { uid, mode } = lstatSync(join(of, entry.name));
    if (!entry.isDirectory() || uid !== unknownUser || !isReadable(join(of, entry.name))) continue;
    await mkdir(join(layer, entry.name), { recursive: true });
    await chmod(join(layer, entry.name), mode & 0o7777);
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Makes what something is mounted over. */
async function makePlace(place: string, isFile: boolean): Promise<void> {
  await mkdir(isFile ? dirname(place) : place, { recursive: true });
  if (isFile) await writeFile(place, '', { flag: 'a' });
}

function byLength(a: { readonly at: string }, b: { readonly at: string }): number {
  return a.at.length - b.at.length;
}

/** What /proc has of the kernel, and not of a process: its parameters, `sysrq-trigger` and others that root may write. */
function kernelFiles(): readonly string[] {
  return readdirSync('/proc', { withFileTypes: true })
    .filter((entry) => !/^\d+$/.test(entry.name) && !entry.isSymbolicLink())
    .map(({ name }) => `/proc/${name}`)
    .filter((path) => {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      return stat !== undefined && (stat.isDirectory() || (stat.mode & 0o222) !== 0);
    });
}

/** The folders on the way to mounts that the container has of its own: 0755, as container runtimes make them. */
function parentsOf(
  mounts: readonly { readonly at: string }[],
  isPresent: (top: string) => boolean,
): readonly string[] {
  const parents = new Set<string>();
  for (const { at } of mounts) {
    const [top = ''] = at.slice(1).split('/');
    if (isPresent(top)) continue;
    for (let path = dirname(at); path !== '/'; path = dirname(path)) parents.add(path);
  }
  const own = new Set(['/dev', '/proc', ...scratchFolders]);
  return [...parents].filter((path) => !own.has(path)).toSorted((a, b) => a.length - b.length);
}

/** Follows the links on the way: `/var/run` may be `/run`. */
function resolveMount(path: string, view: MachineView): string {
  const clean = join('/', path);
  const [top = ''] = clean.slice(1).split('/');
  if (!isShown(view, top)) return clean.replace(/^\/var\/run(?=\/|$)/, '/run');
  let known = dirname(clean);
  while (known !== '/' && !existsSync(known)) known = dirname(known);
  return join(realpathSync(known), clean.slice(known.length));
}

/** The host name of a container, in the network of its node that of the node, and its `/etc/hosts`. */
export function namesOf(
  pod: Pod,
  { node, addresses }: PodNetwork,
): { readonly hostname: string; readonly hosts: string } {
  const hostname = pod.spec.hostNetwork === true ? node.name : hostnameOf(pod);
  return { hostname, hosts: hostsFile(pod, addresses, hostname) };
}

/** `/etc/hosts` (pkg/kubelet/kubelet_pods.go `managedHostsFileContent`, `nodeHostsFileContent`). A node has no names. */
export function hostsFile(pod: Pod, addresses: readonly string[], hostname: string): string {
  const { subdomain = '', hostAliases = [] } = pod.spec;
  const domain =
    subdomain === '' ? '' : `${hostname}.${subdomain}.${pod.metadata.namespace ?? ''}.svc.cluster.local`;
  const names = domain === '' ? hostname : `${domain}\t${hostname}`;
  const isOfNode = pod.spec.hostNetwork === true;
  const own = isOfNode ? [] : addresses.map((address) => `${address}\t${names}`);
  const aliases = hostAliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join('\t')}`);
  return [
    ...[
      `# Kubernetes-managed hosts file${isOfNode ? ' (host network)' : ''}.`,
      '127.0.0.1\tlocalhost',
      '::1\tlocalhost ip6-localhost ip6-loopback',
    ],
    ...[
      'fe00::\tip6-localnet',
      'fe00::\tip6-mcastprefix',
      'fe00::1\tip6-allnodes',
      'fe00::2\tip6-allrouters',
    ],
    ...own,
    ...(aliases.length === 0 ? [] : ['', '# Entries added by HostAliases.', ...aliases]),
    '',
  ].join('\n');
}

/** The host name of a Pod (`GeneratePodHostNameAndDomain`). */
export function hostnameOf({ metadata, spec }: Pod): string {
  const name = spec.hostname ?? metadata.name ?? '';
  return name.slice(0, 63).replace(/(?<![-.])[-.]+$/, '');
}
