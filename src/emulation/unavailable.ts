/** Advice on what to install or to enable where the cluster network cannot be made. */

const packages: ReadonlyMap<string, string> = new Map([
  ['setpriv', 'util-linux'],
  ['unshare', 'util-linux'],
  ['mount', 'mount'],
  ['ip', 'iproute2'],
  ['nft', 'nftables'],
]);

const withoutUserNamespaces = 'or run it as root: sudo servicenet up';

/** Kinds of failures, by a line that a program prints; the first that fits. */
const causes: readonly { readonly program?: string; readonly pattern: RegExp; readonly advice: string }[] = [
  {
    pattern: /unshare failed: No space left on device/,
    advice: `user namespaces are switched off: sudo sysctl -w user.max_user_namespaces=10000, ${withoutUserNamespaces}`,
  },
  {
    program: 'unshare',
    pattern: /Operation not permitted|Permission denied|uid_map|setgroups/,
    advice: `this user may not make user namespaces: on Ubuntu, sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in a container, allow them in its seccomp profile; ${withoutUserNamespaces}`,
  },
  {
    program: 'mount',
    pattern: /permission denied|not permitted/i,
    advice: `mounting inside the namespaces is not permitted: allow it in the AppArmor or seccomp profile, ${withoutUserNamespaces}`,
  },
  {
    pattern: /(?:Unknown device type|RTNETLINK answers: (?:Operation not supported|Not supported))/,
    advice: 'the kernel lacks bridges or veth: modprobe bridge veth',
  },
];

/** One line from what the programs printed on their way in. */
export function advice(printed: string): string {
  const [, program] =
    /(?:^|: |failed to execute )(\w+): (?:not found|command not found|No such file)/m.exec(printed) ??
    // There is a file of the name that is no program.
    /^sh: (?:line )?\d+: (\w+): Permission denied/m.exec(printed) ??
    [];
  const name = program === undefined ? undefined : packages.get(program);
  if (program !== undefined && name !== undefined) return install(program, name);
  const lines = printed.trim().split('\n');
  const [first = ''] = lines;
  const cause = causes.find(({ program: of = '', pattern }) =>
    lines.some((line) => line.includes(of) && pattern.test(line)),
  );
  return cause === undefined ? first || 'the namespaces ended without a word' : cause.advice;
}

/** Why the first program of the cluster network could not be started. */
export function missingProgram(error: Error): string {
  // EACCES: there is a file of the name that is no program, or a folder of PATH that may not be read.
  const missing = 'code' in error && (error.code === 'ENOENT' || error.code === 'EACCES');
  return missing ? install('setpriv', 'util-linux') : error.message;
}

function install(program: string, name: string): string {
  return `there is no ${program}: install the package ${name}`;
}
