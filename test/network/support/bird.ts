import { spawn } from 'node:child_process';
import { isRecord } from '../../../src/objects/json.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import type { Located } from './network.ts';

/** BIRD in a machine of a test. Its files are in the machine's own /run, and go with it. */
export class Bird {
  readonly #at: Located;
  readonly #files: string;

  private constructor(at: Located) {
    this.#at = at;
    this.#files = `/run/bird-${at.machine.name}`;
  }

  /** @param config of BIRD 2; `router id`, `protocol device` and `protocol kernel` of both families are there already. */
  static async start(at: Located, config: string): Promise<Bird> {
    const bird = new Bird(at);
    await bird.#write(config);
    const files = bird.#files;
    const words = ['bird', '-f', '-c', `${files}.conf`, '-s', `${files}.ctl`, '-P', `${files}.pid`];
    const [program = 'nsenter', ...args] = [...at.enter, ...words];
    const started = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    started.stderr.on('data', (chunk) => (said += String(chunk)));
    while (!(await bird.birdc('show status')).includes('Daemon is up and running')) {
      if (started.exitCode !== null) throw new Error(`bird has ended: ${said}`);
    }
    return bird;
  }

  /** What `birdc` answers. */
  async birdc(command: string): Promise<string> {
    const args = ['-s', `${this.#files}.ctl`, ...command.split(' ')];
    const { stdout } = await this.#at.machine.host.exec('birdc', args);
    return stdout;
  }

  async stop(): Promise<void> {
    await this.birdc('down');
  }

  async #write(config: string): Promise<void> {
    const input = `${preamble(this.#at)}\n${config}\n`;
    await this.#at.machine.host.exec('sh', ['-c', 'cat > "$0"', `${this.#files}.conf`], { input });
  }
}

function preamble({ addresses }: Located): string {
  return `
log stderr all;
router id ${addresses.IPv4};
protocol device {}
protocol kernel { ipv4 { export all; }; merge paths on; }
protocol kernel { ipv6 { export all; }; merge paths on; }`;
}

/** Destinations in the kernel of a machine that BIRD has put there, and their next hops. */
export async function birdRoutes(
  { machine }: Located,
  family: 4 | 6 = 4,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { stdout } = await machine.host.exec('ip', ['-json', `-${family}`, 'route', 'show', 'proto', 'bird']);
  const listed: unknown = JSON.parse(stdout === '' ? '[]' : stdout);
  const routes = new Map<string, readonly string[]>();
  for (const route of Array.isArray(listed) ? listed.filter((one) => isRecord(one)) : []) {
    const hops = listAt(route, 'nexthops').map((hop) => textAt(hop, 'gateway'));
    const gateways = hops.length === 0 ? [textAt(route, 'gateway')] : hops;
    routes.set(textAt(route, 'dst'), gateways.toSorted());
  }
  return routes;
}
