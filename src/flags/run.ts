import { homedir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from './readers.ts';
import { Flags, optional, textOf, yesOrNo } from './readers.ts';

/** Where a program runs: in a client Pod of a namespace, in a Pod, on a node, or outside of the cluster. */
export type RunWhere =
  | { readonly kind: 'client'; readonly namespace: string }
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'outside' };

/** The configuration of `servicenet run`: validated, frozen. */
export interface RunConfig {
  /** The kubeconfig that `up` has written. */
  readonly kubeconfigPath: string;
  readonly where: RunWhere;
  /** The program and its arguments. */
  readonly program: readonly string[];
}

/** Checks the flags of `servicenet run`. @throws {ConfigError} naming the flag and what it takes. */
export function runConfig(
  options: Readonly<Record<string, unknown>>,
  program: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): RunConfig {
  const flags = new Flags(options);
  const namespace = flags.read('namespace', textOf());
  const pod = flags.read('pod', optional(textOf()));
  const node = flags.read('node', optional(textOf()));
  const outside = flags.read('outside', yesOrNo);
  if ([pod !== undefined, node !== undefined, outside].filter(Boolean).length > 1) {
    throw new ConfigError('--pod, --node and --outside: only one of them');
  }
  const named = flags.read('kubeconfig', optional(textOf())) ?? environment['KUBECONFIG']?.split(':')[0];
  const where: RunWhere = outside
    ? { kind: 'outside' }
    : node !== undefined
      ? { kind: 'node', name: node }
      : pod !== undefined
        ? { kind: 'pod', namespace, name: pod }
        : { kind: 'client', namespace };
  return Object.freeze({
    kubeconfigPath:
      named === undefined || named === '' ? join(homedir(), '.servicenet', 'kubeconfig') : named,
    where,
    program,
  });
}
