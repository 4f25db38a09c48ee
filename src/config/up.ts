import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { clusterCidrs } from './cluster-cidrs.ts';
import { type LogConfig, logConfig } from './common-flags.ts';
import { defaultPool } from './default-pool.ts';
import {
  address,
  bindAddress,
  Flags,
  integer,
  list,
  oneOf,
  optional,
  text,
  textOf,
  texts,
  yesOrNo,
} from './flags.ts';
import { nodePortRange, serviceCidrs } from './service-ranges.ts';

/** The configuration of `servicenet up`: validated, frozen. */
export interface UpConfig extends LogConfig {
  readonly bindAddress: string;
  /** 0 takes any free one. */
  readonly port: number;
  readonly serviceCidrs: ReturnType<typeof serviceCidrs>;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  /** The administrator's bearer token; undefined: a random one. */
  readonly token: string | undefined;
  /** Files to apply. */
  readonly apply: readonly string[];
  /** Simulated nodes. */
  readonly nodes: number;
  /** Where the Pods of simulated nodes get their addresses: one CIDR, or two of different families. */
  readonly clusterCidrs: readonly string[];
  /** Whether a terminal shows everything as it changes. */
  readonly liveView: boolean;
  /** Ranges of the pool that Services of type LoadBalancer get their addresses from; none: no pool. */
  readonly defaultPool: readonly string[];
  /** As in kube-controller-manager's flag: `*`, `name`, `-name`. */
  readonly controllers: readonly string[];
  readonly allocation: 'server' | 'controller';
  /** Undefined: nowhere. */
  readonly metricsBindAddress: { readonly host: string; readonly port: number } | undefined;
  readonly authorizationMode: 'AlwaysAllow' | 'RBAC';
  /** Where the store is kept; undefined: in memory. */
  readonly dataDir: string | undefined;
  /** Where the kubeconfig is written, mode 0600. */
  readonly kubeconfigPath: string;
  /** A program and its arguments, to run against the server and then end; none: `up` ends with a signal. */
  readonly program: readonly string[];
}

/**
 * Checks the flags of `servicenet up`. With a program, nothing of it is where another `up` may be: any free port, and
 * a kubeconfig of its own.
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 * @param program what stands behind the flags.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function upConfig(
  options: Readonly<Record<string, unknown>>,
  isTerminal: boolean,
  program: readonly string[] = [],
): UpConfig {
  const alone = program.length === 0;
  const flags = new Flags(options);
  const serviceRanges = serviceCidrs(flags.read('serviceClusterIpRange', text));
  const families = serviceRanges.map(({ range }) => range.family);
  return Object.freeze({
    bindAddress: flags.read('bindAddress', address),
    port: flags.read('port', optional(integer(0, 65535))) ?? (alone ? 6443 : 0),
    serviceCidrs: serviceRanges,
    nodePorts: nodePortRange(flags.read('serviceNodePortRange', text)),
    token: flags.read('token', optional(textOf(8))),
    apply: flags.read('apply', texts),
    nodes: flags.read('nodes', integer(0, 1000)),
    clusterCidrs: clusterCidrs(flags.read('clusterCidr', optional(text)), families),
    liveView: flags.read('liveView', yesOrNo) && alone,
    defaultPool: defaultPool(flags.read('defaultPool', text), families),
    controllers: flags.read('controllers', list),
    allocation: flags.read('allocation', oneOf(['server', 'controller'])),
    metricsBindAddress: flags.read('metricsBindAddress', bindAddress),
    authorizationMode: flags.read('authorizationMode', oneOf(['AlwaysAllow', 'RBAC'])),
    dataDir: flags.read('dataDir', optional(textOf())),
    kubeconfigPath: flags.read('writeKubeconfig', optional(textOf())) ?? defaultKubeconfigPath(alone),
    program,
    ...logConfig(flags, isTerminal),
  });
}

function defaultKubeconfigPath(alone: boolean): string {
  return join(homedir(), '.servicenet', alone ? 'kubeconfig' : `kubeconfig-${randomUUID()}`);
}
