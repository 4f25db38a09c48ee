import { joinKey, type ObjectName } from '../../objects/meta.ts';
import type { EventRow, NodeRow, PoolRow } from '../../view/rows/rows.ts';

/** Words for rows, the same in lists and details, on a screen and in printed lines. Pure. */

/** `Service shop/web`. */
export function objectText({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${joinKey(namespace, name)}`;
}

/** `NotReady, cordoned`. */
export function nodeState({ isReady, isCordoned }: NodeRow): string {
  return `${isReady ? 'Ready' : 'NotReady'}${isCordoned ? ', cordoned' : ''}`;
}

/** `3 of 254 used`. */
export function usageText({ used, total }: PoolRow['families'][number]): string {
  return `${used.toLocaleString('en-US')} of ${total.toLocaleString('en-US')} used`;
}

/** `12:34:56  Service shop/web  Assigned  192.0.2.1 from pool default (×3)`. */
export function eventText({ time, about, reason, message, count }: EventRow): string {
  const times = count > 1 ? ` (×${count})` : '';
  return `${time.slice(11, 19)}  ${objectText(about)}  ${reason}  ${message}${times}`;
}
