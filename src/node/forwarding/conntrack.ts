import type { ForwardingPlan } from '../../network/forwarding/forwarding-plan.ts';
import { staleFlows, type UdpDestination, type UdpFlow } from '../../network/forwarding/stale-flows.ts';
import type { ExecResult, Host } from '../../host/host.ts';
import { type IPFamily, parseAddress } from '../../objects/address.ts';

/** The connection tracking of a machine, by its program `conntrack`. */
export class Conntrack {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Deletes the UDP flows of a family that the plan makes stale ({@link staleFlows}), and nothing of other protocols.
   *
   * @param former destinations that Services had.
   * @returns how many.
   * @throws {ProgramMissingError} where there is no `conntrack`.
   * @throws {Error} where it fails.
   */
  async deleteStaleFlows(
    plan: ForwardingPlan,
    former: Iterable<UdpDestination>,
    family: IPFamily,
  ): Promise<number> {
    const { exitCode, stdout, stderr } = await this.#run('-L', family);
    if (exitCode !== 0) throw new Error(`conntrack -L: ${stderr.trim()}`);
    let deleted = 0;
    for (const stale of staleFlows(plan, former, listedFlows(family, stdout))) {
      deleted += await this.#delete(stale);
    }
    return deleted;
  }

  async #delete({ family, destination, port, replySource, replyPort }: UdpFlow): Promise<number> {
    const { exitCode, stdout, stderr } = await this.#run(
      '-D',
      family,
      ...['--orig-dst', destination, '--orig-port-dst', String(port)],
      ...['--reply-src', replySource, '--reply-port-src', String(replyPort)],
    );
    // Exit code 1: it found none, the flow has ended by itself.
    if (exitCode !== 0 && !stderr.includes('0 flow entries')) {
      throw new Error(`conntrack -D: ${stderr.trim()}`);
    }
    return stdout.split('\n').filter((line) => line !== '').length;
  }

  #run(command: '-L' | '-D', family: IPFamily, ...filter: readonly string[]): Promise<ExecResult> {
    const name = family === 'IPv4' ? 'ipv4' : 'ipv6';
    return this.#host.exec('conntrack', [command, '-f', name, '-p', 'udp', ...filter]);
  }
}

/**
 * The flows in what `conntrack -L -p udp` printed: one a line, first as the client sends, then as answers come. Lines of
 * another form are left out.
 */
export function* listedFlows(family: IPFamily, listing: string): Generator<UdpFlow> {
  for (let start = 0; start < listing.length;) {
    const newline = listing.indexOf('\n', start);
    const end = newline === -1 ? listing.length : newline;
    const flow = flowOf(family, listing.slice(start, end));
    if (flow !== undefined) yield flow;
    start = end + 1;
  }
}

/** `src=… dst=… sport=… dport=… [UNREPLIED] src=… dst=… sport=…`: the second source is that of answers. */
const pattern = / src=\S+ dst=(\S+) sport=\d+ dport=(\d+) .*?\bsrc=(\S+) dst=\S+ sport=(\d+)/;

function flowOf(family: IPFamily, line: string): UdpFlow | undefined {
  const [, destination, port, replySource, replyPort] = pattern.exec(line) ?? [];
  if (destination === undefined || port === undefined || replySource === undefined) return undefined;
  return {
    family,
    destination: canonical(family, destination),
    port: Number(port),
    replySource: canonical(family, replySource),
    replyPort: Number(replyPort),
  };
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(family: IPFamily, text: string): string {
  return family === 'IPv4' ? text : (parseAddress(text)?.canonical ?? text);
}
