import type { RequestInfo } from './exchange.ts';

const verbs: ReadonlySet<string> = new Set(['watch', 'proxy']);
const subresources: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);

/**
 * Whether a request lasts as long as the client likes: no limit of time or number is for it (apiserver
 * `server/filters/longrunning.go`, BasicLongRunningRequestCheck).
 */
export function isLongRunning({ verb, subresource }: RequestInfo): boolean {
  return verbs.has(verb) || subresources.has(subresource);
}
