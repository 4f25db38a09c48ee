import { z } from 'zod';
import type { LabelRequirement } from '../objects/label-requirement.ts';
import { parseLabelSelector } from '../objects/labels.ts';
import {
  bindAddressFlag,
  clusterConfig,
  type ClusterConfig,
  clusterFlags,
  durationFlag,
  listFlag,
  logFlags,
  parseFlags,
} from './flags.ts';
import { loadBalancerFlags, type LoadBalancerSettings, loadBalancerSettings } from './load-balancer.ts';
import { ConfigError, nodePortRange, serviceCidrs } from './service-ranges.ts';

const seconds = 1000;

/** The flags of `servicenet controller`, as commander gives them. */
const flags = z.object({
  ...clusterFlags,
  ...logFlags,
  ...loadBalancerFlags,
  controllers: listFlag,
  serviceSelector: z.string().default(''),
  allocation: z.enum(['server', 'controller']),
  serviceClusterIpRange: z.string().optional(),
  serviceNodePortRange: z.string(),
  metricsBindAddress: bindAddressFlag,
  leaderElect: z.boolean(),
  leaderElectLeaseDuration: durationFlag,
  leaderElectRenewDeadline: durationFlag,
  leaderElectRetryPeriod: durationFlag,
  leaderElectResourceNamespace: z.string().min(1),
  leaderElectResourceName: z.string().min(1),
});

/** The configuration of `servicenet controller`: validated, frozen. */
export interface ControllerConfig {
  readonly cluster: ClusterConfig;
  /** As in kube-controller-manager's flag: `*`, `name`, `-name`. */
  readonly controllers: readonly string[];
  /** Services whose endpoints are written; empty: all. */
  readonly serviceSelector: readonly LabelRequirement[];
  /** Who allocates for Services: with `server` it is audited, with `controller` we do it. */
  readonly allocation: 'server' | 'controller';
  /** Where the API server has no ServiceCIDRs. */
  readonly serviceCidrs: ReturnType<typeof serviceCidrs> | undefined;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  readonly loadBalancer: LoadBalancerSettings;
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
  readonly leaderElection: LeaderElectionConfig | undefined;
  readonly logLevel: z.infer<typeof flags>['logLevel'];
  readonly logFormat: 'json' | 'pretty';
}

/** Durations in milliseconds. */
export interface LeaderElectionConfig {
  readonly leaseDuration: number;
  readonly renewDeadline: number;
  readonly retryPeriod: number;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Checks the flags of `servicenet controller`.
 *
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function controllerConfig(
  options: Readonly<Record<string, unknown>>,
  isTerminal: boolean,
): ControllerConfig {
  const parsed = parseFlags(flags, options);
  return Object.freeze({
    cluster: clusterConfig(parsed),
    controllers: parsed.controllers,
    serviceSelector: labelSelector('--service-selector', parsed.serviceSelector),
    allocation: parsed.allocation,
    serviceCidrs:
      parsed.serviceClusterIpRange === undefined ? undefined : serviceCidrs(parsed.serviceClusterIpRange),
    nodePorts: nodePortRange(parsed.serviceNodePortRange),
    loadBalancer: loadBalancerSettings(parsed),
    metrics: parsed.metricsBindAddress,
    leaderElection: parsed.leaderElect ? leaderElection(parsed) : undefined,
    logLevel: parsed.logLevel,
    logFormat: parsed.logFormat ?? (isTerminal ? 'pretty' : 'json'),
  });
}

function leaderElection(parsed: z.infer<typeof flags>): LeaderElectionConfig {
  const {
    leaderElectLeaseDuration: leaseDuration,
    leaderElectRenewDeadline: renewDeadline,
    leaderElectRetryPeriod: retryPeriod,
  } = parsed;
  if (leaseDuration < seconds || leaseDuration <= renewDeadline) {
    throw new ConfigError('--leader-elect-lease-duration: must be at least 1s and above the renew deadline');
  }
  if (retryPeriod <= 0 || renewDeadline <= retryPeriod * 1.2) {
    throw new ConfigError('--leader-elect-renew-deadline: must be above 1.2 times the retry period');
  }
  return {
    leaseDuration,
    renewDeadline,
    retryPeriod,
    namespace: parsed.leaderElectResourceNamespace,
    name: parsed.leaderElectResourceName,
  };
}

function labelSelector(flag: string, text: string): readonly LabelRequirement[] {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    throw new ConfigError(`${flag}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
