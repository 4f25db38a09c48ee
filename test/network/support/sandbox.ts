import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readlink } from 'node:fs/promises';
import { run } from '../../../src/host/local-host.ts';
import { asUser, type Maker } from './gate.ts';

/** Without this, a mistake would change the network of the machine that runs the tests. */
const guard =
  'if [ "$(readlink /proc/self/ns/net)" = "$HOST_NET" ]; then echo "not in a namespace" >&2; exit 1; fi';

/**
 * Namespaces to make a network in: network, mount and PID, and for an ordinary user a user namespace around them. All
 * that runs in it ends with it, and it ends with this process, by whatever signal.
 */
export class Sandbox {
  readonly #holder: ChildProcess;
  readonly #enter: readonly string[];
  readonly #hostNet: string;

  private constructor(holder: ChildProcess, enter: readonly string[], hostNet: string) {
    this.#holder = holder;
    this.#enter = enter;
    this.#hostNet = hostNet;
  }

  static async open(maker: Maker): Promise<Sandbox> {
    const hostNet = await readlink('/proc/self/ns/net');
    const user = maker === 'user';
    const inside = `${guard}; mount -t tmpfs tmpfs /run && mkdir -p /run/netns && echo ready && exec sleep infinity`;
    const [program = 'setpriv', ...args] = [
      ...(user && asUser.length > 0 ? asUser : ['setpriv']),
      ...[
        '--pdeathsig',
        'KILL',
        'unshare',
        user ? '-Urnm' : '-nm',
        '-p',
        '--mount-proc',
        '--fork',
        '--kill-child',
      ],
      ...['sh', '-c', inside],
    ];
    const holder = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, HOST_NET: hostNet },
    });
    const heard = await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')]);
    if (String(heard[0]).trim() !== 'ready') throw new Error(`no namespaces: ${String(heard[0])}`);
    const pid = (await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8')).trim();
    const asMaker = user ? asUser : [];
    const enter = [
      ...asMaker,
      'nsenter',
      '-t',
      pid,
      ...(user ? ['-U', '--preserve-credentials'] : []),
      '-n',
      '-m',
      '-p',
    ];
    return new Sandbox(holder, enter, hostNet);
  }

  /** The words before a program that runs inside, in a network namespace by its name or in the sandbox's own. */
  enter(namespace?: string): readonly string[] {
    return [...this.#enter, ...(namespace === undefined ? [] : ['nsenter', `--net=/run/netns/${namespace}`])];
  }

  /** Runs lines of sh inside. @throws {Error} with what it printed, when one fails. */
  async script(lines: readonly string[]): Promise<void> {
    const [program = 'nsenter', ...args] = this.enter();
    const input = [`HOST_NET=${this.#hostNet}`, guard, 'set -e', ...lines].join('\n');
    const { exitCode, stderr } = await run(program, [...args, 'sh', '-s'], { input });
    if (exitCode !== 0) throw new Error(stderr);
  }

  async close(): Promise<void> {
    if (this.#holder.exitCode !== null || this.#holder.signalCode !== null) return;
    const ended = once(this.#holder, 'exit');
    this.#holder.kill('SIGKILL');
    await ended;
  }
}
