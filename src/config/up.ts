import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { clusterCidrs } from './cluster-cidrs.ts';
import { defaultPool } from './default-pool.ts';
import { bindAddressFlag } from './flags.ts';
import { ConfigError, nodePortRange, serviceCidrs } from './service-ranges.ts';

/** The flags of `servicenet up`, as commander gives them. */
const flags = z.object({
  bindAddress: z.union([z.ipv4(), z.ipv6()]),
  port: z.coerce.number().int().min(0).max(65535),
  serviceClusterIpRange: z.string(),
  serviceNodePortRange: z.string(),
  token: z.string().min(8).optional(),
  writeKubeconfig: z.string().min(1).optional(),
  apply: z.array(z.string()).default([]),
  nodes: z.coerce.number().int().min(0).max(1000),
  clusterCidr: z.string().optional(),
  liveView: z.boolean(),
  defaultPool: z.string(),
  controllers: z.string(),
  allocation: z.enum(['server', 'controller']),
  metricsBindAddress: bindAddressFlag,
  authorizationMode: z.enum(['AlwaysAllow', 'RBAC']),
  dataDir: z.string().min(1).optional(),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
  logFormat: z.enum(['json', 'pretty']).optional(),
});

/** The configuration of `servicenet up`: validated, frozen. */
export interface UpConfig extends Readonly<
  Omit<
    z.infer<typeof flags>,
    | 'controllers'
    | 'clusterCidr'
    | 'defaultPool'
    | 'serviceClusterIpRange'
    | 'serviceNodePortRange'
    | 'writeKubeconfig'
    | 'logFormat'
  >
> {
  readonly serviceCidrs: ReturnType<typeof serviceCidrs>;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  /** Where the Pods of simulated nodes get their addresses: one CIDR, or two of different families. */
  readonly clusterCidrs: readonly string[];
  /** Ranges of the pool that Services of type LoadBalancer get their addresses from; none: no pool. */
  readonly defaultPool: readonly string[];
  /** As in kube-controller-manager's flag: `*`, `name`, `-name`. */
  readonly controllers: readonly string[];
  /** Where the kubeconfig is written, mode 0600. */
  readonly kubeconfigPath: string;
  readonly logFormat: 'json' | 'pretty';
}

/**
 * Checks the flags of `servicenet up`.
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function upConfig(options: Readonly<Record<string, unknown>>, isTerminal: boolean): UpConfig {
  const parsed = flags.safeParse(options);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const flag = String(issue?.path[0] ?? '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new ConfigError(`--${flag}: ${issue?.message ?? 'is not valid'}`);
  }
  const {
    serviceClusterIpRange,
    serviceNodePortRange,
    clusterCidr,
    defaultPool: pool,
    controllers,
    writeKubeconfig,
    logFormat,
    ...rest
  } = parsed.data;
  const serviceRanges = serviceCidrs(serviceClusterIpRange);
  const families = serviceRanges.map(({ range }) => range.family);
  return Object.freeze({
    ...rest,
    serviceCidrs: serviceRanges,
    clusterCidrs: clusterCidrs(clusterCidr, families),
    defaultPool: defaultPool(pool, families),
    nodePorts: nodePortRange(serviceNodePortRange),
    controllers: controllers
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
    kubeconfigPath: writeKubeconfig ?? defaultKubeconfigPath(),
    logFormat: logFormat ?? (isTerminal ? 'pretty' : 'json'),
  });
}

function defaultKubeconfigPath(): string {
  return join(homedir(), '.servicenet', 'kubeconfig');
}
