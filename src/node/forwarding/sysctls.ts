import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';

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
