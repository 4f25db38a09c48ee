import type { ForwardingPlan } from '../../network/forwarding/forwarding-plan.ts';
import { staleFlows, type UdpDestination, type UdpFlow } from '../../network/forwarding/stale-flows.ts';
import type { ExecResult, Host } from '../../host/host.ts';
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import type { Logger } from 'pino';

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

/** kube-proxy's flags `--conntrack-…`. 0 leaves a value as it is. */
export interface ConntrackLimits {
  /** Connections that the kernel remembers, for each CPU core. */
  readonly maxPerCore: number;
  /** Connections at least; of no effect where maxPerCore is 0. */
  readonly min: number;
  /** Seconds without a packet after which an established connection is forgotten. */
  readonly tcpTimeoutEstablishedSeconds: number;
  /** Seconds. */
  readonly tcpTimeoutCloseWaitSeconds: number;
  /** Let packets pass that are out of the TCP window. */
  readonly tcpBeLiberal: boolean;
  /** Seconds, for flows without an answer. */
  readonly udpTimeoutSeconds: number;
  /** Seconds, for flows in both directions. */
  readonly udpTimeoutStreamSeconds: number;
}

/** A kernel parameter that is to have a value. */
interface Wanted {
  readonly name: string;
  readonly value: number;
  /** A larger value stays. */
  readonly orMore?: true;
}

/** More connections are not asked for by the number of cores: each takes about 300 bytes (`conntrack/sysctls.go`). */
const maxByCores = 1_048_576;

/**
 * Sets the kernel parameters that kube-proxy sets (`pkg/proxy/conntrack/sysctls.go`). In its mode nftables these are
 * all: `ip_forward` is the network plugin's business. One that cannot be set is logged by its name.
 *
 * @param cores of the machine.
 */
export async function setSysctls(
  { sysctl }: Pick<Host, 'sysctl'>,
  limits: ConntrackLimits,
  cores: number,
  log: Logger,
): Promise<void> {
  for (const { name, value, orMore } of wantedSysctls(limits, cores)) {
    try {
      const present = Number(await sysctl.get(name));
      if (present === value || (orMore === true && present > value)) continue;
      await sysctl.set(name, String(value));
      log.info({ sysctl: name, value }, 'set a kernel parameter');
    } catch (error) {
      // In a container and in a network namespace, as of kind's nodes, most are not there or not to be written.
      const problem = error instanceof Error && 'code' in error ? error.code : undefined;
      const cause = isForbidden(problem) ? { problem } : { err: error };
      log.warn({ sysctl: name, value, ...cause }, 'cannot set a kernel parameter and go on without it');
    }
  }
}

function isForbidden(code: unknown): boolean {
  return code === 'ENOENT' || code === 'EACCES' || code === 'EPERM' || code === 'EROFS';
}

function wantedSysctls(limits: ConntrackLimits, cores: number): readonly Wanted[] {
  const max = limits.maxPerCore > 0 ? maxConnections(limits, cores) : 0;
  const wanted: readonly Wanted[] = [
    { name: 'nf_conntrack_max', value: max },
    { name: 'nf_conntrack_buckets', value: Math.floor(max / 4), orMore: true },
    { name: 'nf_conntrack_tcp_timeout_established', value: limits.tcpTimeoutEstablishedSeconds },
    { name: 'nf_conntrack_tcp_timeout_close_wait', value: limits.tcpTimeoutCloseWaitSeconds },
    { name: 'nf_conntrack_tcp_be_liberal', value: limits.tcpBeLiberal ? 1 : 0 },
    { name: 'nf_conntrack_udp_timeout', value: limits.udpTimeoutSeconds },
    { name: 'nf_conntrack_udp_timeout_stream', value: limits.udpTimeoutStreamSeconds },
  ];
  return wanted.flatMap(({ name, ...rest }) =>
    rest.value === 0 ? [] : [{ name: `net/netfilter/${name}`, ...rest }],
  );
}

function maxConnections({ maxPerCore, min }: ConntrackLimits, cores: number): number {
  return maxPerCore * cores > maxByCores ? maxByCores : Math.max(maxPerCore * cores, min);
}
