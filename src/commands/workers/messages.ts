import type { DnsConfig } from '../../flags/dns.ts';
import type { RouterConfig } from '../../flags/router.ts';
import { isRecord } from '../../objects/json.ts';
import type { MetricsSnapshot } from '../../telemetry/metrics.ts';

/** What passes between the process of a command and its further workers. All are of one version. */

/** A command, with its flags. */
export type Job =
  | { readonly command: 'dns'; readonly config: DnsConfig }
  | { readonly command: 'router'; readonly config: RouterConfig };

export type ToWorker =
  | { readonly to: 'start'; readonly number: number; readonly job: Job }
  /** A question, whose answer has its id. */
  | { readonly to: 'problems' | 'metrics'; readonly id: number }
  /** As a signal to end would. */
  | { readonly to: 'stop' };

export type FromWorker =
  /** Why it is not ready. */
  | { readonly from: 'problems'; readonly id: number; readonly problems: readonly string[] }
  | { readonly from: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot };

export function isToWorker(message: unknown): message is ToWorker {
  return isRecord(message) && typeof message['to'] === 'string';
}

export function isFromWorker(message: unknown): message is FromWorker {
  return isRecord(message) && typeof message['from'] === 'string';
}
