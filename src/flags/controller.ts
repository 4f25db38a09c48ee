import type { LabelRequirement } from '../objects/labels/label-selector.ts';
import { parseLabelSelector } from '../objects/labels/labels.ts';
import { type AttachmentSettings, attachmentSettings } from './shared.ts';
import { clusterConfig, type ClusterConfig, type LogConfig, logConfig } from './shared.ts';
import { ConfigError } from './readers.ts';
import { bindAddress, duration, Flags, oneOf, optional, someList, text, textOf, yesOrNo } from './readers.ts';
import { type LoadBalancerSettings, loadBalancerSettings } from './shared.ts';
import { nodePortRange, readServiceCidrs } from './shared.ts';
import { errorMessage } from '../objects/status.ts';

const seconds = 1000;

/** The configuration of `servicenet controller`: validated, frozen. */
export interface ControllerConfig extends LogConfig {
  readonly cluster: ClusterConfig;
  /** Names of the controllers to run. */
  readonly controllers: readonly string[];
  /** Services whose endpoints are written; empty: all. */
  readonly serviceSelector: readonly LabelRequirement[];
  /** What allocates for Services: with `server` it is audited, with `controller` we do it. */
  readonly allocation: 'server' | 'controller';
  /** Where the API server has no ServiceCIDRs. */
  readonly serviceCidrs: ReturnType<typeof readServiceCidrs> | undefined;
  readonly nodePorts: ReturnType<typeof nodePortRange>;
  readonly loadBalancer: LoadBalancerSettings;
  readonly attachments: AttachmentSettings;
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
  readonly leaderElection: LeaderElectionConfig | undefined;
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
 * @param selectControllers the names that a choice such as `*`, `name`, `-name` selects; throws WrongValue.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function controllerConfig(
  options: Readonly<Record<string, unknown>>,
  isTerminal: boolean,
  selectControllers: (choice: readonly string[]) => readonly string[],
): ControllerConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    controllers: flags.read('controllers', (value) => selectControllers(someList(value))),
    serviceSelector: labelSelector('--service-selector', flags.read('serviceSelector', optional(text)) ?? ''),
    allocation: flags.read('allocation', oneOf(['server', 'controller'])),
    serviceCidrs: flags.read('serviceClusterIpRange', optional(readServiceCidrs)),
    nodePorts: flags.read('serviceNodePortRange', nodePortRange),
    loadBalancer: loadBalancerSettings(flags),
    attachments: attachmentSettings(flags),
    metrics: flags.read('metricsBindAddress', bindAddress),
    leaderElection: flags.read('leaderElect', yesOrNo) ? leaderElection(flags) : undefined,
    ...logConfig(flags, isTerminal),
  });
}

function leaderElection(flags: Flags): LeaderElectionConfig {
  const leaseDuration = flags.read('leaderElectLeaseDuration', duration);
  const renewDeadline = flags.read('leaderElectRenewDeadline', duration);
  const retryPeriod = flags.read('leaderElectRetryPeriod', duration);
  if (leaseDuration < seconds || leaseDuration <= renewDeadline) {
    throw new ConfigError(
      `--leader-elect-lease-duration: must be at least 1s and above --leader-elect-renew-deadline (${inSeconds(renewDeadline)})`,
    );
  }
  if (retryPeriod <= 0 || renewDeadline <= retryPeriod * 1.2) {
    throw new ConfigError(
      `--leader-elect-renew-deadline: must be above 1.2 times --leader-elect-retry-period (${inSeconds(retryPeriod)}) and below --leader-elect-lease-duration (${inSeconds(leaseDuration)})`,
    );
  }
  return {
    leaseDuration,
    renewDeadline,
    retryPeriod,
    namespace: flags.read('leaderElectResourceNamespace', textOf()),
    name: flags.read('leaderElectResourceName', textOf()),
  };
}

function inSeconds(milliseconds: number): string {
  return `${milliseconds / seconds}s`;
}

function labelSelector(flag: string, text: string): readonly LabelRequirement[] {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    throw new ConfigError(`${flag}: ${errorMessage(error)}`);
  }
}
