import { deciderAdvice, parseDecider, parsePlace } from '../objects/flows/places.ts';
import { outcomes } from '../objects/flows/outcomes.ts';
import {
  boolean,
  ConfigError,
  duration,
  type Given,
  list,
  nonEmpty,
  oneOf,
  optional,
  readFlags,
  type Table,
  type Values,
  wholeNumber,
  WrongValue,
} from './readers.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../objects/names.ts';
import { outputFlag, reportedClusterFlags } from './shared.ts';

const places = 'pod/…, deploy/NAMESPACE/NAME, node/NAME, outside, control-plane or an address';

/** The flags of `servicenet flows`. */
export const flowsFlags = {
  cluster: reportedClusterFlags,
  namespace: {
    flag: '-n, --namespace <name>',
    about: 'only flows with an end or a Service in this namespace; that of names without one (else default)',
    read: optional(nonEmpty),
  },
  from: { flag: '--from <place>', about: `only flows from here: ${places}`, read: optional(nonEmpty) },
  to: {
    flag: '--to <place>',
    about: 'only flows to here: as --from, svc/NAMESPACE/NAME, dns/NAME; each but the last also with :PORT',
    read: optional(nonEmpty),
  },
  outcomes: {
    flag: '--outcome <outcomes>',
    about: `only these: ${outcomes.join(', ')}`,
    read: optional((value) => list(value).map((each) => oneOf(...outcomes).read(each))),
  },
  by: {
    flag: '--by <object>',
    about:
      'only flows that this object decided, such as networkpolicy/NAMESPACE/NAME, svc/NAMESPACE/NAME or ingress/NAMESPACE/NAME',
    read: optional(nonEmpty),
  },
  all: {
    flag: '--all',
    about: "with the cluster's own: probes, the API server's, answered questions to its DNS",
    default: false,
    read: boolean,
  },
  last: {
    flag: '--last <number>',
    about: 'the number of flows that are known, at most',
    default: '200',
    read: wholeNumber(0, 10_000),
  },
  follow: {
    flag: '-f, --follow',
    about: 'print what comes, too, until Ctrl-C',
    default: false,
    read: boolean,
  },
  groups: {
    flag: '--groups',
    about: 'the last five minutes, what is alike in one line: the worst and busiest first',
    default: false,
    read: boolean,
  },
  expect: {
    flag: '--expect <flow>',
    about:
      "wait for a flow, as 'FROM TO OUTCOME': exit with 0 when it is seen or known, with 1 if not, with 2 if that cannot be known",
    read: optional(nonEmpty),
  },
  timeoutMs: {
    flag: '--timeout <duration>',
    about: 'of --expect',
    default: '10s',
    read: duration,
  },
  serviceAccount: {
    flag: '--service-account <namespace/name>',
    about: 'of a cluster: ask agents with a token of this service account, good for flows alone',
    read: optional(serviceAccount),
  },
  agentsNamespace: {
    flag: '--agents-namespace <name>',
    about: 'of a cluster: where its agents are',
    default: 'servicenet-system',
    read: nonEmpty,
  },
  output: {
    ...outputFlag,
    about: 'output format; json: one flow a line',
    ...oneOf('table', 'wide', 'json'),
  },
} satisfies Table;

/** The configuration of `servicenet flows`. */
export interface FlowsConfig extends Values<typeof flowsFlags> {
  /** The kubeconfig that `up` has written, if it is one. */
  readonly kubeconfigPath: string;
}

function serviceAccount(value: unknown): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = '', ...rest] = nonEmpty(value).split('/');
  const isName = isDNS1123Label(namespace).length === 0 && isDNS1123Subdomain(name).length === 0;
  if (isName && rest.length === 0) return { namespace, name };
  throw new WrongValue('must be a namespace and a name, such as shop/viewer');
}

/**
 * Checks the flags of `servicenet flows`; `--expect` takes the place of `--from`, `--to`, `--outcome` and `--by`.
 *
 * @param kubeconfigs what `$KUBECONFIG` says, and the path that `up` writes to.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function flowsConfig(
  given: Given,
  kubeconfigs: { readonly environment: string | undefined; readonly default: string },
): FlowsConfig {
  const flags = readFlags(flowsFlags, given);
  const { cluster } = flags;
  const named =
    (cluster.kind === 'kubeconfig' ? cluster.path : undefined) ??
    kubeconfigs.environment?.split(':')[0] ??
    '';
  const kubeconfigPath = named === '' ? kubeconfigs.default : named;
  const namespace = flags.namespace ?? 'default';
  const check = (flag: string, text: string | undefined): void => {
    if (text !== undefined && parsePlace(text, namespace) === undefined)
      throw new ConfigError(`${flag}: ${JSON.stringify(text)} is no place of a cluster: give ${places}`);
  };
  check('--from', flags.from);
  check('--to', flags.to);
  if (flags.by !== undefined && parseDecider(flags.by, namespace) === undefined)
    throw new ConfigError(
      `--by: ${JSON.stringify(flags.by)} is no object that decides about flows: ${deciderAdvice}`,
    );
  if (flags.groups && (flags.follow || flags.expect !== undefined))
    throw new ConfigError('--groups says what is known: not with --follow or --expect');
  if (flags.expect === undefined) return Object.freeze({ ...flags, kubeconfigPath });
  if ([flags.from, flags.to, flags.outcomes, flags.by].some((each) => each !== undefined) || flags.follow)
    throw new ConfigError('--expect says all: not with --from, --to, --outcome, --by or --follow');
  const [from = '', to = '', word = '', ...rest] = flags.expect.trim().split(/\s+/);
  const outcome = outcomes.find((each) => each === word);
  if (outcome === undefined || rest.length > 0)
    throw new ConfigError(`--expect: give 'FROM TO OUTCOME', with one of ${outcomes.join(', ')}`);
  check('--expect', from);
  check('--expect', to);
  return Object.freeze({ ...flags, kubeconfigPath, from, to, outcomes: [outcome], all: true });
}
