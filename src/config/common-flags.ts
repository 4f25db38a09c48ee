import { type Flags, oneOf, optional, serverUrl, textOf } from './flags.ts';
import { ConfigError } from './errors.ts';

/** Flags that several commands have. */

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The level and the format of the log. */
export interface LogConfig {
  readonly logLevel: (typeof logLevels)[number];
  readonly logFormat: 'json' | 'pretty';
}

/**
 * `--log-level` and `--log-format`.
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 */
export function logConfig(flags: Flags, isTerminal: boolean): LogConfig {
  const format = flags.read('logFormat', optional(oneOf(['json', 'pretty'])));
  return {
    logLevel: flags.read('logLevel', oneOf(logLevels)),
    logFormat: format ?? (isTerminal ? 'pretty' : 'json'),
  };
}

/** Where an API server is, as the flags say it: by kubeconfig, or directly. */
export type ClusterConfig =
  | { readonly kind: 'kubeconfig'; readonly path?: string; readonly context?: string }
  | {
      readonly kind: 'endpoint';
      readonly url: string;
      readonly tokenFile?: string;
      /** A file. */
      readonly certificateAuthority?: string;
    };

/** How to reach the API server. @throws {ConfigError} for flags that contradict each other. */
export function clusterConfig(flags: Flags): ClusterConfig {
  const given = optional(textOf());
  const kubeconfig = flags.read('kubeconfig', given);
  const context = flags.read('context', given);
  const server = flags.read('server', optional(serverUrl));
  const tokenFile = flags.read('tokenFile', given);
  const certificateAuthority = flags.read('certificateAuthority', given);
  if (server === undefined) {
    if (tokenFile !== undefined || certificateAuthority !== undefined) {
      throw new ConfigError('--token-file and --certificate-authority require --server');
    }
    return {
      kind: 'kubeconfig',
      ...(kubeconfig === undefined ? {} : { path: kubeconfig }),
      ...(context === undefined ? {} : { context }),
    };
  }
  if (kubeconfig !== undefined || context !== undefined) {
    throw new ConfigError('--server cannot be used with --kubeconfig or --context');
  }
  return {
    kind: 'endpoint',
    url: server,
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
  };
}
