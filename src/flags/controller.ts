import type { LabelRequirement } from '../objects/selectors/label-selector.ts';
import { parseLabelSelector } from '../objects/selectors/labels.ts';
import { errorMessage } from '../objects/status.ts';
import {
  boolean,
  ConfigError,
  duration,
  type Given,
  group,
  nonEmpty,
  nonEmptyList,
  optional,
  readFlags,
  readValue,
  type Table,
  text,
  type Values,
  WrongValue,
} from './readers.ts';
import {
  allocationFlag,
  attachmentFlags,
  clusterFlags,
  loadBalancerFlags,
  logFlags,
  metricsAddress,
  nodePortRangeFlag,
  readServiceCidrs,
} from './shared.ts';

/** The defaults of durations are kube-controller-manager's. */
const leaderElectionTable = {
  elect: {
    flag: '--leader-elect',
    about: 'work only while holding the leader election lease',
    negated: 'work without a lease; only for a single process',
    default: true,
    read: boolean,
  },
  leaseDurationMs: {
    flag: '--leader-elect-lease-duration <duration>',
    about: 'how long other instances wait before they replace a silent leader',
    default: '15s',
    read: duration,
  },
  renewDeadlineMs: {
    flag: '--leader-elect-renew-deadline <duration>',
    about: 'how long a leader works without renewing its lease',
    default: '10s',
    read: duration,
  },
  retryPeriodMs: {
    flag: '--leader-elect-retry-period <duration>',
    about: 'time between attempts to take or renew the lease',
    default: '2s',
    read: duration,
  },
  namespace: {
    flag: '--leader-elect-resource-namespace <namespace>',
    about: 'namespace of the lease',
    default: 'kube-system',
    read: nonEmpty,
  },
  name: {
    flag: '--leader-elect-resource-name <name>',
    about: 'name of the lease',
    default: 'servicenet-controller',
    read: nonEmpty,
  },
} satisfies Table;

/** How the leader is elected. */
export type LeaderElectionConfig = Omit<Values<typeof leaderElectionTable>, 'elect'>;

/** The flags of `servicenet controller`. */
export const controllerFlags = {
  cluster: clusterFlags,
  loadBalancer: loadBalancerFlags,
  attachments: attachmentFlags,
  /** As the list is given; {@link controllerConfig} finds the names. */
  controllers: {
    flag: '--controllers <list>',
    isList: true,
    about: 'controllers to run: a list of *, name and -name; * is service-allocation and load-balancer',
    default: '*',
    read: nonEmptyList,
  },
  serviceSelector: {
    flag: '--service-selector <selector>',
    about: 'write endpoints only for Services with these labels',
    default: '',
    read: labelSelector,
  },
  allocation: allocationFlag(
    'who allocates cluster IPs and node ports: the API server (service-allocation then audits them), or service-allocation',
  ),
  serviceCidrs: {
    flag: '--service-cluster-ip-range <cidrs>',
    about: 'ranges of cluster IPs, primary family first, for API servers without ServiceCIDRs',
    read: optional(readServiceCidrs),
  },
  nodePorts: nodePortRangeFlag("the API server's range of node ports"),
  metrics: metricsAddress(':8080'),
  leaderElection: group(leaderElectionTable, leaderElection),
  ...logFlags('info'),
} satisfies Table;

/** The configuration of `servicenet controller`; `controllers` are the names of those to run. */
export type ControllerConfig = Values<typeof controllerFlags>;

/**
 * Checks the flags of `servicenet controller`.
 *
 * @param selectControllers the names that a choice such as `*`, `name`, `-name` selects; throws WrongValue.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function controllerConfig(
  given: Given,
  selectControllers: (choice: readonly string[]) => readonly string[],
): ControllerConfig {
  const flags = readFlags(controllerFlags, given);
  const controllers = readValue('--controllers', selectControllers, flags.controllers);
  return Object.freeze({ ...flags, controllers });
}

/** kube-controller-manager's rules (`component-base/config/validation`); they hold where there is an election. */
function leaderElection({
  elect,
  ...election
}: Values<typeof leaderElectionTable>): LeaderElectionConfig | undefined {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = election;
  if (!elect) return undefined;
  if (leaseDurationMs < 1000 || leaseDurationMs <= renewDeadlineMs) {
    throw new ConfigError(
      `--leader-elect-lease-duration: must be at least 1s and above --leader-elect-renew-deadline (${inSeconds(renewDeadlineMs)})`,
    );
  }
  if (retryPeriodMs <= 0 || renewDeadlineMs <= retryPeriodMs * 1.2) {
    throw new ConfigError(
      `--leader-elect-renew-deadline: must be above 1.2 times --leader-elect-retry-period (${inSeconds(retryPeriodMs)}) and below --leader-elect-lease-duration (${inSeconds(leaseDurationMs)})`,
    );
  }
  return election;
}

function inSeconds(milliseconds: number): string {
  return `${milliseconds / 1000}s`;
}

function labelSelector(value: unknown): readonly LabelRequirement[] {
  try {
    return parseLabelSelector(text(value));
  } catch (error) {
    throw new WrongValue(errorMessage(error));
  }
}
