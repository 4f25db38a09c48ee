import {
  boolean,
  ConfigError,
  type Given,
  group,
  nonEmpty,
  optional,
  readFlags,
  type Table,
  type Values,
} from './readers.ts';
import { isWorkload, parseReference, type WorkloadKind } from '../objects/references.ts';

const whereTable = {
  namespace: {
    flag: '-n, --namespace <namespace>',
    about: 'namespace of the Pod',
    default: 'default',
    read: nonEmpty,
  },
  pod: {
    flag: '--pod <name>',
    about:
      'in this Pod: NAME, NAMESPACE/NAME, or deploy/NAME for one of a workload (default: in a client Pod that exists for the program alone)',
    read: optional(nonEmpty),
  },
  node: { flag: '--node <name>', about: 'on this node', read: optional(nonEmpty) },
  outside: {
    flag: '--outside',
    about: 'on a machine that belongs to no cluster',
    default: false,
    read: boolean,
  },
} satisfies Table;

/** Where a program runs: in a client Pod of a namespace, in a Pod, on a node, or outside of the cluster. */
export type RunWhere =
  | { readonly kind: 'client'; readonly namespace: string }
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string }
  /** A Pod of a workload, a ready one if there is one. */
  | {
      readonly kind: 'workload';
      readonly workload: WorkloadKind;
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'outside' };

/** The flags of `servicenet run`. */
export const runFlags = {
  where: group(whereTable, runWhere),
  kubeconfig: {
    flag: '--kubeconfig <file>',
    about:
      'the kubeconfig that servicenet up has written (default: $KUBECONFIG, then ~/.servicenet/kubeconfig)',
    read: optional(nonEmpty),
  },
} satisfies Table;

/** The configuration of `servicenet run`. */
export interface RunConfig {
  /** The kubeconfig that `up` has written. */
  readonly kubeconfigPath: string;
  readonly where: RunWhere;
  /** The program and its arguments. */
  readonly program: readonly string[];
}

/**
 * Checks the flags of `servicenet run`.
 *
 * @param program the words behind the flags.
 * @param kubeconfigs what `$KUBECONFIG` says, and the path that `up` writes to.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function runConfig(
  given: Given,
  program: readonly string[],
  kubeconfigs: { readonly environment: string | undefined; readonly default: string },
): RunConfig {
  const { where, kubeconfig } = readFlags(runFlags, given);
  const named = kubeconfig ?? kubeconfigs.environment?.split(':')[0] ?? '';
  return Object.freeze({ kubeconfigPath: named === '' ? kubeconfigs.default : named, where, program });
}

function runWhere({ namespace, pod, node, outside }: Values<typeof whereTable>): RunWhere {
  if ([pod !== undefined, node !== undefined, outside].filter(Boolean).length > 1) {
    throw new ConfigError('--pod, --node and --outside: only one of them');
  }
  if (outside) return { kind: 'outside' };
  if (node !== undefined) return { kind: 'node', name: node };
  return pod === undefined ? { kind: 'client', namespace } : podNamed(pod, namespace);
}

/** The Pod that a reference names, or a Pod of a workload. @throws {ConfigError} for other references. */
export function podNamed(text: string, namespace: string): RunWhere {
  const reference = parseReference(text, namespace);
  if (reference !== undefined) {
    const { kind, ...object } = reference;
    if (kind === undefined || kind === 'Pod') return { kind: 'pod', ...object };
    if (isWorkload(kind)) return { kind: 'workload', workload: kind, ...object };
  }
  throw new ConfigError(
    `--pod: ${JSON.stringify(text)} is no Pod: give NAME, NAMESPACE/NAME, pod/NAME or a workload as deploy/NAME`,
  );
}
