import {
  boolean,
  type Given,
  nonEmpty,
  optional,
  readFlags,
  type Table,
  type Values,
  wholeNumber,
} from './readers.ts';
import { traceProxyFlags } from './reports.ts';
import { loadBalancerFlags, reportedClusterFlags } from './shared.ts';

/** The flags of `servicenet page`. */
export const pageFlags = {
  cluster: reportedClusterFlags,
  namespace: {
    flag: '-n, --namespace <name>',
    about: 'show only this namespace: rights in it are enough',
    read: optional(nonEmpty),
  },
  port: {
    flag: '--port <port>',
    about: 'serve it at this port of 127.0.0.1; 0 for any free port (default: 6480, or the next free one)',
    read: optional(wholeNumber(0, 65_535)),
  },
  open: {
    flag: '--open',
    about: 'open the page in a browser too, by xdg-open or open',
    default: false,
    read: boolean,
  },
  proxy: traceProxyFlags,
  settings: loadBalancerFlags,
} satisfies Table;

/** The configuration of `servicenet page`. */
export type PageConfig = Values<typeof pageFlags>;

/** Checks the flags of `servicenet page`. @throws {ConfigError} naming the flag and what it takes. */
export function pageConfig(given: Given): PageConfig {
  return readFlags(pageFlags, given);
}
