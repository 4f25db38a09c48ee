import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';
import type { Container, Pod } from '../../objects/types/core.generated.ts';

/**
 * A step, in order, in making the root of a container: the machine's file system, which stays as it is, with the
 * container's own files in it.
 */
export type MountStep =
  | { readonly kind: 'symlink'; readonly to: string; readonly at: string }
  | { readonly kind: 'bind'; readonly from: string; readonly at: string; readonly isReadOnly: boolean }
  | { readonly kind: 'tmpfs' | 'dev' | 'proc'; readonly at: string };

/** A file or a folder that appears at a path. */
export interface Mount {
  readonly from: string;
  readonly at: string;
  readonly isReadOnly: boolean;
  readonly isFile: boolean;
}

/**
 * A folder of the machine as a container sees it: with the names of `layer`, which are added to it. Where there is `work`,
 * the container may change all, and its changes are in `layer`.
 */
export interface Overlay {
  readonly layer: string;
  /** An empty folder for the kernel, in the file system of `layer`. */
  readonly work: string | undefined;
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
export const scratchFolders: readonly string[] = ['/tmp', '/run', '/dev/shm'];
/** Folders of the machine with a layer for each container, which may write to it. */
const layeredFolders: ReadonlySet<string> = new Set(['etc', 'home', 'opt', 'root', 'srv', 'usr', 'var']);

/** The folder of the files that a container has written to folders of the machine. @param folder of the container. */
export function writtenIn(folder: string): string {
  return join(folder, 'layer');
}

/**
 * Plans a root, and makes the names that are mounted over and that this machine does not have.
 *
 * @param folder of the container, empty.
 * @param isWritable what the container writes is its own, and is lost with it.
 * @throws the system's error.
 */
export async function makeRoot(folder: string, mounts: readonly Mount[], isWritable: boolean): Promise<Root> {
  const resolved = mounts.map((mount) => ({ ...mount, at: resolveOnMachine(mount.at) }));
  const overlays = new Map<string, Overlay>();
  const overlayOf = async (top: string): Promise<void> => {
    if (overlays.has(top)) return;
    const isLayered = isWritable && layeredFolders.has(top);
    const overlay: Overlay = {
      layer: join(writtenIn(folder), top),
      work: isLayered ? join(folder, 'work', top) : undefined,
      of: `/${top}`,
      at: join(folder, 'root', top),
    };
    overlays.set(top, overlay);
    for (const path of [overlay.layer, overlay.work, overlay.at]) {
      if (path !== undefined) await mkdir(path, { recursive: true });
    }
  };
  if (isWritable) {
    const folders = readdirSync('/', { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of folders) if (layeredFolders.has(name)) await overlayOf(name);
  }
  for (const { at, isFile } of resolved) {
    const [top = ''] = at.slice(1).split('/');
    const isOwn = ownFolders.has(top) || at === `/${top}` || !existsSync(`/${top}`);
    if (isOwn || (existsSync(at) && !lstatSync(at).isSymbolicLink())) continue;
    await overlayOf(top);
    const place = join(writtenIn(folder), at);
    await mkdir(isFile ? dirname(place) : place, { recursive: true });
    if (isFile) await writeFile(place, '');
  }
  const tops = readdirSync('/').filter((name) => !ownFolders.has(name));
  const steps = tops.flatMap((name): MountStep[] => {
    const at = `/${name}`;
    const overlay = overlays.get(name);
    if (overlay !== undefined) {
      return [{ kind: 'bind', from: overlay.at, at, isReadOnly: overlay.work === undefined }];
    }
    const stat = lstatSync(at);
    if (stat.isSymbolicLink()) return [{ kind: 'symlink', to: readlinkSync(at), at }];
    return stat.isDirectory() ? [{ kind: 'bind', from: at, at, isReadOnly: true }] : [];
  });
  return {
    isWritable,
    overlays: [...overlays.values()],
    steps: [
      ...steps,
      { kind: 'dev', at: '/dev' },
      { kind: 'proc', at: '/proc' },
      ...scratchFolders.map((at): MountStep => ({ kind: 'tmpfs', at })),
      // A mount inside of another comes after it.
      ...resolved
        .toSorted((a, b) => a.at.length - b.at.length)
        .map(({ from, at, isReadOnly }): MountStep => ({ kind: 'bind', from, at, isReadOnly })),
    ],
  };
}

/** Follows the links that this machine has on the way: `/var/run` may be `/run`. */
function resolveOnMachine(path: string): string {
  const clean = join('/', path);
  let known = dirname(clean);
  while (known !== '/' && !existsSync(known)) known = dirname(known);
  return join(realpathSync(known), clean.slice(known.length));
}

/** A root and namespaces of its own for a program, with bubblewrap or without it. */
export interface SandboxCommandOptions {
  readonly root: Root;
  readonly hostname: string;
  readonly hasBubblewrap: boolean;
  /** An empty folder, for the root that is made without bubblewrap. */
  readonly folder: string;
  /** Names of Linux' capabilities without `CAP_`, in lower case; `all`. */
  readonly capabilities: readonly string[];
  /** Absent: as the owner of the namespaces, who is root there. */
  readonly identity?: Identity | undefined;
  /** The program is to begin a session itself. */
  readonly hasTerminal: boolean;
}

/** The user of a program, by numbers of the namespace. */
export interface Identity {
  readonly user: number;
  readonly group: number;
  /** Further ones. */
  readonly groups: readonly number[];
}

/**
 * The default capabilities of containers (containerd `defaultUnixCaps`), without those to make devices and to write
 * audits.
 */
export const defaultCapabilities: readonly string[] = [
  ...['chown', 'dac_override', 'fsetid', 'fowner', 'net_raw', 'setgid', 'setuid', 'setfcap', 'setpcap'],
  ...['net_bind_service', 'sys_chroot', 'kill'],
];

/** As this user, without more privileges than these. */
export function withPrivileges({
  capabilities,
  identity,
}: Pick<SandboxCommandOptions, 'capabilities' | 'identity'>): readonly string[] {
  const as =
    identity === undefined
      ? []
      : [
          ...[`--reuid=${identity.user}`, `--regid=${identity.group}`],
          identity.groups.length === 0 ? '--clear-groups' : `--groups=${identity.groups.join(',')}`,
        ];
  if (capabilities.includes('all')) return ['setpriv', '--no-new-privs', ...as, '--'];
  const set = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  return ['setpriv', '--no-new-privs', ...as, `--bounding-set=${set}`, `--inh-caps=-all`, '--'];
}

/** Writes to descriptor 3 whether the program exists, then executes it. */
export const report = `cd "$0" 2>/dev/null || { echo "chdir to cwd (\\"$0\\") set in config.json failed: no such file or directory" >&3; exit 128; }
if ! command -v -- "$1" >/dev/null 2>&1; then
  case "$1" in
    */*) echo "exec: \\"$1\\": stat $1: no such file or directory" >&3 ;;
    *) echo "exec: \\"$1\\": executable file not found in \\$PATH" >&3 ;;
  esac
  exit 127
fi
echo started >&3
unset OLDPWD
exec 3>&-
exec "$@"`;

/** The command line before a program, which is process 1 there. Run in a network namespace that is the program's already. */
export function sandboxArgv(options: SandboxCommandOptions): readonly string[] {
  const { root, capabilities, hasBubblewrap } = options;
  const overlays = root.overlays.map(overlayLine);
  if (hasBubblewrap) {
    return [
      ...['unshare', '--mount', 'sh', '-c', `set -e\n${[...overlays, 'exec bwrap "$@"'].join('\n')}`, 'sh'],
      ...root.steps.flatMap(bubblewrapStep),
      ...(root.isWritable ? [] : ['--remount-ro', '/']),
      ...['--unshare-pid', '--unshare-uts', '--unshare-ipc'],
      ...['--hostname', options.hostname, '--as-pid-1', '--die-with-parent'],
      ...(options.hasTerminal ? [] : ['--new-session']),
      ...(capabilities.includes('all') ? ['--cap-add', 'ALL'] : []),
      ...withPrivileges(options),
    ];
  }
  const at = `${options.folder}/all`;
  const script = [
    'set -e',
    'mount --make-rprivate /',
    // Without such a program, the name stays that of the machine.
    `hostname ${quoted(options.hostname)} || true`,
    ...overlays,
    `mkdir -p ${quoted(at)}\nmount -t tmpfs -o mode=0755 tmpfs ${quoted(at)}`,
    ...root.steps.map((step) => shellStep(at, step)),
    // One command a line: `set -e` does not see what fails before `&&`, and the program must not begin without its root.
    ...(root.isWritable ? [] : [`mount -o remount,bind,ro ${quoted(at)}`]),
    `cd ${quoted(at)}`,
    'pivot_root . .',
    'umount -l .',
    'cd /',
    'exec "$@"',
  ].join('\n');
  return [
    ...['unshare', '--mount', '--uts', '--ipc', '--pid', '--fork', '--kill-child', 'sh', '-c', script, 'sh'],
    ...withPrivileges(options),
  ];
}

/**
 * The line that makes an overlay. One that the container may write to has no replacement: what is written below it would
 * be the machine's, so a container whose layer the kernel refuses (an overlay on two others, among others) does not start.
 */
function overlayLine({ layer, work, of, at }: Overlay): string {
  if (work === undefined) {
    const joined = `mount -t overlay overlay -o ro,lowerdir=${quoted(`${layer}:${of}`)} ${quoted(at)} 2>/dev/null`;
    // Mounted read-only into the container.
    return `${joined} || mount --rbind ${quoted(of)} ${quoted(at)}`;
  }
  const options = `lowerdir=${quoted(of)},upperdir=${quoted(layer)},workdir=${quoted(work)}`;
  const refused = `the kernel refuses a layer over ${of}, and without one the container would write to the machine`;
  return `mount -t overlay overlay -o ${options} ${quoted(at)} 2>/dev/null || { echo ${quoted(refused)} >&3; exit 128; }`;
}

function bubblewrapStep(step: MountStep): readonly string[] {
  switch (step.kind) {
    case 'symlink':
      return ['--symlink', step.to, step.at];
    case 'bind':
      return [step.isReadOnly ? '--ro-bind' : '--bind', step.from, step.at];
    case 'tmpfs':
      return ['--perms', '1777', '--tmpfs', step.at];
    default:
      return [`--${step.kind}`, step.at];
  }
}

function shellStep(root: string, step: MountStep): string {
  const at = quoted(`${root}${step.at}`);
  switch (step.kind) {
    case 'symlink':
      return `ln -s ${quoted(step.to)} ${at}`;
    case 'bind': {
      const from = quoted(step.from);
      const place = `if [ -d ${from} ]; then mkdir -p ${at}; else mkdir -p "$(dirname ${at})"; [ -e ${at} ] || : >${at}; fi`;
      return `${place}\nmount --rbind ${from} ${at}${step.isReadOnly ? `\nmount -o remount,bind,ro ${at}` : ''}`;
    }
    case 'tmpfs':
      return `mkdir -p ${at}\nmount -t tmpfs -o mode=1777 tmpfs ${at}`;
    case 'proc':
      return `mkdir -p ${at}\nmount -t proc proc ${at}`;
    case 'dev':
      return `mkdir -p ${at}
mount -t tmpfs -o mode=0755 tmpfs ${at}
for device in null zero full random urandom tty; do : >${at}/$device; mount --bind /dev/$device ${at}/$device; done
ln -s /proc/self/fd ${at}/fd; ln -s /proc/self/fd/0 ${at}/stdin; ln -s /proc/self/fd/1 ${at}/stdout; ln -s /proc/self/fd/2 ${at}/stderr
mkdir ${at}/shm ${at}/pts; mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts ${at}/pts; ln -s pts/ptmx ${at}/ptmx`;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The user by a container's `securityContext` and that of its Pod (pkg/securitycontext).
 *
 * @returns undefined if they set none.
 * @throws {ContainerError} for root with `runAsNonRoot`.
 */
export function identityOf({ metadata, spec }: Pod, container: Container): Identity | undefined {
  const ofPod = spec.securityContext ?? {};
  const {
    runAsUser: user = ofPod.runAsUser,
    runAsGroup: group = ofPod.runAsGroup,
    runAsNonRoot,
  } = container.securityContext ?? {};
  if ((runAsNonRoot ?? ofPod.runAsNonRoot) === true && user === 0) {
    const where = `"${metadata.name ?? ''}_${metadata.namespace ?? ''}(${metadata.uid ?? ''})"`;
    const message = `container's runAsUser breaks non-root policy (pod: ${where}, container: ${container.name})`;
    throw new ContainerError('CreateContainerConfigError', message);
  }
  const { fsGroup, supplementalGroups = [] } = ofPod;
  const groups = [...new Set([...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups])];
  if (user === undefined && group === undefined && groups.length === 0) return undefined;
  return { user: user ?? 0, group: group ?? 0, groups };
}

/** Names of Linux' capabilities without `CAP_`, in lower case; `all`. */
export function capabilitiesOf({ securityContext }: Container): readonly string[] {
  const { privileged = false, capabilities } = securityContext ?? {};
  const named = (list: readonly string[] = []): string[] =>
    list.map((name) => name.toLowerCase().replace(/^cap_/, '')).filter((name) => /^[a-z_]+$/.test(name));
  const added = named(capabilities?.add);
  if (privileged || added.includes('all')) return ['all'];
  const dropped = new Set(named(capabilities?.drop));
  const kept = dropped.has('all') ? [] : defaultCapabilities.filter((name) => !dropped.has(name));
  return [...new Set([...kept, ...added])];
}

/** Whether the user namespace of this process has all these: that of an ordinary user has 0 alone. */
export function areMapped({ user, group, groups }: Identity): boolean {
  return isMapped('uid', user) && [group, ...groups].every((each) => isMapped('gid', each));
}

/** @param kind of the number: of users, or of groups. */
export function isMapped(kind: 'uid' | 'gid', number: number): boolean {
  return readFileSync(`/proc/self/${kind}_map`, 'utf8')
    .trim()
    .split('\n')
    .some((line) => {
      const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
      return number >= first && number < first + count;
    });
}
