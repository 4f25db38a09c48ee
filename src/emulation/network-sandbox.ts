import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, readlink } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { checkStreams } from '../host/local-host.ts';
import type { IPFamily } from '../objects/address.ts';
import { removeCgroups } from './containers/resource-limits.ts';
import { cgroupsVariable, type FirstMessage, type Forwarding, isFirstMessage } from './protocol.ts';
import { lanLines, outsideLines } from './lan.ts';

/** The packages of programs, for advice on what to install. */
const packages: ReadonlyMap<string, string> = new Map([
  ['setpriv', 'util-linux'],
  ['unshare', 'util-linux'],
  ['mount', 'mount'],
  ['ip', 'iproute2'],
  ['nft', 'nftables'],
]);

const withoutUserNamespaces = 'or run it as root';

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
    advice: 'the kernel lacks bridges or veth: sudo modprobe -a bridge veth',
  },
];

/**
 * What to install or to enable where the cluster network cannot be made: one line.
 *
 * @param printed what the programs printed on their way in.
 */
export function explainUnavailable(printed: string): string {
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

/** The cluster network cannot be made on this machine. The message names what to install or to enable. */
export class NetworkUnavailableError extends Error {
  override readonly name = 'NetworkUnavailableError';
}

export interface NetworkSandboxOptions {
  /** A file of JavaScript or TypeScript, to be run inside with a channel to this process. */
  readonly entry: string;
  readonly nodeOptions: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly families: readonly IPFamily[];
}

/**
 * Namespaces around a process: network, mount and PID; for an ordinary user a user namespace around them.
 * Everything inside ends with that process, which ends with this one, also by a signal.
 */
export class NetworkSandbox {
  /**
   * The process inside, or the first of the programs that lead to it: messages are sent to it and received from it.
   */
  readonly channel: ChildProcess;
  /** The command line before a program that is to run inside, in its first network namespace. */
  readonly enter: readonly string[];
  readonly #ended: Promise<unknown>;
  /** The name of the folder of the cgroups of its containers. */
  readonly #cgroups: string;

  readonly forwarding: Forwarding;
  /** Why no command of a container can be run inside; empty: they can. */
  readonly commandsObstacle: string;

  private constructor(
    channel: ChildProcess,
    stderr: Readable,
    enter: readonly string[],
    forwarding: Forwarding,
    commandsObstacle: string,
    cgroups: string,
  ) {
    this.#cgroups = cgroups;
    this.commandsObstacle = commandsObstacle;
    this.channel = channel;
    this.enter = enter;
    this.forwarding = forwarding;
    // The programs that lead to the process inside die before it does; it has the other end of their standard error.
    this.#ended = Promise.all([once(channel, 'exit'), once(stderr, 'close')]);
  }

  /**
   * Makes the namespaces, the LAN and `outside`, and begins the process. This is also the probe of the machine: all
   * that the network needs of the kernel is used once, and native code is loaded.
   *
   * @throws {NetworkUnavailableError}
   */
  static async open({
    entry,
    nodeOptions,
    environment,
    families,
  }: NetworkSandboxOptions): Promise<NetworkSandbox> {
    if (process.platform !== 'linux') throw new NetworkUnavailableError('it needs Linux');
    const isRoot = process.getuid?.() === 0;
    const cgroups = `servicenet-${process.pid}-${++opened}`;
    await removeCgroups(isLeft);
    const child = spawn(
      'setpriv',
      [
        ...['--pdeathsig', 'KILL', 'unshare', ...(isRoot ? [] : ['--user', '--map-root-user'])],
        ...['--net', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child'],
        ...['sh', '-c', script(families), 'sh', process.execPath, ...nodeOptions, entry],
      ],
      {
        stdio: ['ignore', 'inherit', 'pipe', 'ipc', 'pipe'],
        // A signal to the process group, such as Ctrl-C, is for the process that ends the network when it is time.
        detached: true,
        env: {
          ...process.env,
          ...environment,
          // An ordinary user's PATH has no sbin on Debian, and containers have no other folders of programs.
          PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin`,
          STARTER_NET: await readlink('/proc/self/ns/net'),
          [cgroupsVariable]: cgroups,
        },
      },
    );
    checkStreams(child);
    const { stderr } = child;
    if (stderr === null) throw new Error('it has no standard error');
    const said: Buffer[] = [];
    const hear = (chunk: Buffer): void => void said.push(chunk);
    stderr.on('data', hear);
    const beginning = begun(child);
    const forwarding = await entered(child);
    const first = forwarding === undefined ? undefined : await beginning;
    if (forwarding === undefined || first === undefined) {
      throw new NetworkUnavailableError(explainUnavailable(Buffer.concat(said).toString()));
    }
    if (first.obstacle !== '') {
      child.kill('SIGKILL');
      throw new NetworkUnavailableError(first.obstacle);
    }
    stderr.off('data', hear);
    for (const chunk of said) process.stderr.write(chunk);
    stderr.pipe(process.stderr, { end: false });
    const enter = await argvInto(child, isRoot);
    return new NetworkSandbox(child, stderr, enter, forwarding, first.commandsObstacle, cgroups);
  }

  /** Ends all that runs inside, and the namespaces with it. */
  async close(): Promise<void> {
    this.channel.kill('SIGKILL');
    await this.#ended;
    await removeCgroups((name) => name === this.#cgroups);
  }

  /** Resolves when the process inside is gone. */
  get ended(): Promise<unknown> {
    return this.#ended;
  }
}

/** Cluster networks that this process has begun. */
let opened = 0;

/** Whether a folder of cgroups is that of a process that has ended. */
function isLeft(name: string): boolean {
  const [, pid] = /^servicenet-(\d+)-\d+$/.exec(name) ?? [];
  return pid !== undefined && !existsSync(`/proc/${pid}`);
}

/** The word that {@link script} prints at its end, on descriptor 4. */
const enteredWords: Readonly<Record<Forwarding, string>> = {
  nftables: 'entered',
  userspace: 'entered-without-nft',
};

/**
 * Run by sh as process 1 inside. Nothing is touched before it is certain that the network namespace is a new one. sh
 * stays beside the process: it waits for what other processes leave behind.
 */
function script(families: readonly IPFamily[]): string {
  return `set -e
if [ "$(readlink /proc/self/ns/net)" = "$STARTER_NET" ]; then echo "no network namespace of its own" >&2; exit 1; fi
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/netns
ip -batch - <<END
${lanLines(families).join('\n')}
END
ip -n outside -batch - <<END
${outsideLines(families).join('\n')}
END
if command -v nft >/dev/null; then
  ip netns exec outside nft 'add table ip probe; add chain ip probe nat { type nat hook prerouting priority -100; }; delete table ip probe'
  echo ${enteredWords.nftables} >&4
else
  echo ${enteredWords.userspace} >&4
fi
exec 4>&-
"$@"`;
}

/** Undefined: it has ended before. */
async function entered(child: ChildProcess): Promise<Forwarding | undefined> {
  const reports = child.stdio[4];
  if (!isReadable(reports)) throw new Error('it has no pipe for reports');
  const failed = Promise.withResolvers<undefined>();
  child.once('error', (error) => failed.reject(new NetworkUnavailableError(missingProgram(error))));
  child.once('close', () => failed.resolve(undefined));
  const said = once(reports, 'data').then(([chunk]) => {
    const word = String(chunk).trim();
    return (['nftables', 'userspace'] as const).find((forwarding) => enteredWords[forwarding] === word);
  });
  return await Promise.race([said, failed.promise]);
}

/** Undefined: the process ended without a message. */
async function begun(child: ChildProcess): Promise<FirstMessage | undefined> {
  const ended = Promise.withResolvers<undefined>();
  child.once('error', () => ended.resolve(undefined));
  child.once('close', () => ended.resolve(undefined));
  const message = await Promise.race([once(child, 'message'), ended.promise]);
  const first: unknown = message?.[0];
  return isFirstMessage(first) ? first : undefined;
}

function isReadable(stream: unknown): stream is Readable {
  return typeof stream === 'object' && stream !== null && 'readable' in stream;
}

/** Process 1 inside, seen from here: the only child of `unshare`. */
async function argvInto({ pid = 0 }: ChildProcess, isRoot: boolean): Promise<readonly string[]> {
  const inside = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
  const user = isRoot ? [] : ['--user', '--preserve-credentials'];
  return ['nsenter', '--target', inside, ...user, '--mount', '--net', '--pid'];
}
