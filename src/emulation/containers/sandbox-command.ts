import { readFileSync } from 'node:fs';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';
import type { Container, Pod } from '../../objects/types/core.generated.ts';
import type { MountStep, Overlay, Root } from './container-root.ts';

/** A root and namespaces of its own for a program, with bubblewrap or without it. */
export interface SandboxCommandOptions {
  readonly root: Root;
  readonly hostname: string;
  readonly hasBubblewrap: boolean;
  /** An empty folder, for the root that is made without bubblewrap. */
  readonly folder: string;
  /** Of its IPC namespace: values by paths below `/proc/sys`. */
  readonly sysctls?: ReadonlyMap<string, string>;
  /** Names of Linux' capabilities without `CAP_`, in lower case. */
  readonly capabilities: readonly string[];
  /** Absent: as the owner of the namespaces, who is root there. */
  readonly identity?: Identity | undefined;
  /** A process in whose PID namespace the program is to be (`targetContainerName`); undefined: in one of its own. */
  readonly target?: number | undefined;
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
  const { root, hasBubblewrap, target } = options;
  const into = target === undefined ? [] : ['nsenter', `--target=${target}`, '--pid', '--'];
  const overlays = root.overlays.map(overlayLine);
  const sysctls = [...(options.sysctls ?? [])].map(sysctlLine);
  // bubblewrap takes the /proc that is there for a PID namespace that it has not made.
  const seen = target === undefined ? [] : ['mount --make-rprivate /', 'mount -t proc proc /proc'];
  if (hasBubblewrap) {
    return [
      ...into,
      ...[
        'unshare',
        '--mount',
        '--ipc',
        'sh',
        '-c',
        `set -e\n${[...seen, ...sysctls, ...overlays, 'exec bwrap "$@"'].join('\n')}`,
        'sh',
      ],
      ...root.steps.flatMap(bubblewrapStep),
      ...(root.isWritable ? [] : ['--remount-ro', '/']),
      ...(target === undefined ? ['--unshare-pid', '--as-pid-1'] : []),
      ...['--unshare-uts', '--hostname', options.hostname, '--die-with-parent'],
      ...(options.hasTerminal ? [] : ['--new-session']),
      ...['--cap-add', 'ALL'],
      ...withPrivileges(options),
    ];
  }
  const at = `${options.folder}/all`;
  const script = [
    'set -e',
    'mount --make-rprivate /',
    // Without such a program, the name stays that of the machine.
    `hostname ${quoted(options.hostname)} || true`,
    ...sysctls,
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
    ...into,
    ...['unshare', '--mount', '--uts', '--ipc'],
    ...(target === undefined ? ['--pid', '--fork', '--kill-child'] : []),
    ...['sh', '-c', script, 'sh'],
    ...withPrivileges(options),
  ];
}

/**
 * The line that makes an overlay. What a container must not be without has no replacement: where the kernel refuses a
 * layer (an overlay on two others, among others), the container does not start.
 */
function overlayLine({ kind, layer, work, of, at }: Overlay): string {
  const overlay = (options: string): string =>
    `mount -t overlay overlay -o nosuid,nodev,${options} ${quoted(at)} 2>/dev/null`;
  const refuse = (why: string): string => `{ echo ${quoted(why)} >&3; exit 128; }`;
  // A name may have a colon or a comma. What is mounted below it stays away.
  const alone = (place: string): string => `mount --bind ${quoted(of)} ${quoted(place)} 2>/dev/null`;
  switch (kind) {
    case 'changeable': {
      const refused = `the kernel refuses a layer over ${of}, and without one the container would write to the machine`;
      const options = `lowerdir=${quoted(of)},upperdir=${quoted(layer)},workdir=${quoted(work)}`;
      return `${overlay(options)} || ${refuse(refused)}`;
    }
    case 'seen':
      return `${overlay(`ro,lowerdir=${quoted(`${layer}:${of}`)}`)} || true`;
    case 'wanted': {
      const refused = `the kernel refuses a layer over ${of}, and without one the container could reach sockets of the machine`;
      return `{ ${alone(work)} && ${overlay(`ro,lowerdir=${quoted(`${layer}:${work}`)}`)}; } || ${refuse(refused)}`;
    }
    case 'shared':
      return `${alone(at)} || ${refuse(`the kernel refuses to mount ${of}`)}`;
  }
}

/** The line that sets a sysctl before `/proc/sys` is read-only. */
function sysctlLine([path, value]: readonly [path: string, value: string]): string {
  const write = `printf %s ${quoted(value)} >${quoted(`/proc/sys/${path}`)}`;
  return `why=$( (${write}) 2>&1) || { echo "write sysctl ${path}: $why" >&3; exit 128; }`;
}

function bubblewrapStep(step: MountStep): readonly string[] {
  switch (step.kind) {
    case 'symlink':
      return ['--symlink', step.to, step.at];
    case 'bind':
      return [step.isReadOnly ? '--ro-bind' : '--bind', step.from, step.at];
    case 'tmpfs':
      return ['--perms', '1777', '--tmpfs', step.at];
    case 'dir':
      return ['--perms', '0755', '--dir', step.at];
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
      return `${place}\nmount --rbind ${from} ${at}\nmount -o remount,bind,nosuid,nodev${step.isReadOnly ? ',ro' : ''} ${at}`;
    }
    case 'tmpfs':
      return `mkdir -p ${at}\nmount -t tmpfs -o mode=1777 tmpfs ${at}`;
    case 'dir':
      return `mkdir -p ${at}`;
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

/** A text as a word of sh. */
export function quoted(text: string): string {
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

/**
 * Those that count within the namespaces of a container. With others it could mount what is read-only anew, make devices,
 * load modules, set the clock or trace the machine: `privileged` does not give them either.
 */
const grantable: readonly string[] = [
  ...defaultCapabilities,
  ...['net_admin', 'net_broadcast', 'sys_ptrace', 'ipc_lock', 'ipc_owner', 'lease'],
];

/** Names of Linux' capabilities without `CAP_`, in lower case. */
export function capabilitiesOf({ securityContext }: Container): readonly string[] {
  const { privileged = false, capabilities } = securityContext ?? {};
  const named = (list: readonly string[] = []): string[] =>
    list.map((name) => name.toLowerCase().replace(/^cap_/, ''));
  const added = named(capabilities?.add);
  if (privileged || added.includes('all')) return grantable;
  const dropped = new Set(named(capabilities?.drop));
  const kept = dropped.has('all') ? [] : defaultCapabilities.filter((name) => !dropped.has(name));
  return [...new Set([...kept, ...added.filter((name) => grantable.includes(name))])];
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
