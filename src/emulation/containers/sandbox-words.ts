/** The words that run a program in a root and namespaces of its own, with bubblewrap or without it. */
import type { MountStep, Overlay, Root } from './root.ts';

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

/** The words before a program, which is process 1 there. Run in a network namespace that is the program's already. */
export function sandboxWords(options: SandboxCommandOptions): readonly string[] {
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

/** Without overlays there are at least the machine's own files, which the container must not change. */
function overlayLine({ layer, work, of, at }: Overlay): string {
  const readOnly = `mount --rbind ${quoted(of)} ${quoted(at)}`;
  const joined = `mount -t overlay overlay -o ro,lowerdir=${quoted(`${layer}:${of}`)} ${quoted(at)} 2>/dev/null || ${readOnly}`;
  if (work === undefined) return joined;
  const options = `lowerdir=${quoted(of)},upperdir=${quoted(layer)},workdir=${quoted(work)}`;
  return `mount -t overlay overlay -o ${options} ${quoted(at)} 2>/dev/null || ${joined}\n`;
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
