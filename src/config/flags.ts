import { z } from 'zod';
import { ConfigError } from './service-ranges.ts';

/** Flags that several commands have. */

/** `--log-level` and `--log-format`. */
export const logFlags = {
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
  logFormat: z.enum(['json', 'pretty']).optional(),
};

/** How to reach the API server. */
export const clusterFlags = {
  kubeconfig: z.string().min(1).optional(),
  context: z.string().min(1).optional(),
  server: z.url({ protocol: /^https?$/, error: 'wants a URL such as https://10.0.0.1:6443' }).optional(),
  tokenFile: z.string().min(1).optional(),
  certificateAuthority: z.string().min(1).optional(),
};

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

/** @throws {ConfigError} for flags that contradict each other. */
export function clusterConfig(options: z.infer<z.ZodObject<typeof clusterFlags>>): ClusterConfig {
  const { kubeconfig, context, server, tokenFile, certificateAuthority } = options;
  if (server === undefined) {
    if (tokenFile !== undefined || certificateAuthority !== undefined) {
      throw new ConfigError('--token-file and --certificate-authority go with --server');
    }
    return {
      kind: 'kubeconfig',
      ...(kubeconfig === undefined ? {} : { path: kubeconfig }),
      ...(context === undefined ? {} : { context }),
    };
  }
  if (kubeconfig !== undefined || context !== undefined) {
    throw new ConfigError('--server does not go with --kubeconfig or --context');
  }
  return {
    kind: 'endpoint',
    url: server,
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
  };
}

/** A list with commas: `*,-name`. */
export const listFlag = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

const units = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** A duration as Go writes it, in one unit: `15s`, `500ms`, `2m`. The value is in milliseconds. */
export const durationFlag = z.string().transform((text, context) => {
  const [, number = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  const factor = units.get(unit);
  if (factor !== undefined) return Number(number) * factor;
  context.addIssue({ code: 'custom', message: 'wants a duration such as 15s or 500ms' });
  return z.NEVER;
});

/** Where a server listens: `host:port`, `:port` for all interfaces, `[::1]:port`; `0` for nowhere. */
export const bindAddressFlag = z.string().transform((text, context) => {
  if (text === '0' || text === '') return undefined;
  const colon = text.lastIndexOf(':');
  const port = text.slice(colon + 1);
  const host = text.slice(0, Math.max(colon, 0)).replace(/^\[(.*)\]$/, '$1');
  if (colon >= 0 && /^\d{1,5}$/.test(port) && Number(port) <= 65535) return { host, port: Number(port) };
  context.addIssue({
    code: 'custom',
    message: 'wants an address such as 127.0.0.1:8080 or :8080, or 0 for none',
  });
  return z.NEVER;
});

/**
 * Checks flags by their schema.
 *
 * @throws {ConfigError} naming the first flag that is wrong and what it takes.
 */
export function parseFlags<S extends z.ZodType>(
  schema: S,
  options: Readonly<Record<string, unknown>>,
): z.infer<S> {
  const parsed = schema.safeParse(options);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const flag = String(issue?.path[0] ?? '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ConfigError(`--${flag}: ${issue?.message ?? 'is not valid'}`);
}
