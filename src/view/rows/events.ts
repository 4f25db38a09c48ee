import { numberAt, textAt } from '../../objects/json.ts';
import { keyOf, type KubeObject } from '../../objects/meta.ts';
import type { EventRow } from './rows.ts';
import type { Trouble } from './trouble.ts';

/** The row of a core/v1 Event. */
export function eventRow(event: KubeObject): EventRow {
  const about = {
    kind: textAt(event, 'involvedObject', 'kind'),
    namespace: textAt(event, 'involvedObject', 'namespace'),
    name: textAt(event, 'involvedObject', 'name'),
  };
  return {
    key: keyOf(event),
    time:
      textAt(event, 'series', 'lastObservedTime') ||
      textAt(event, 'lastTimestamp') ||
      textAt(event, 'eventTime') ||
      (event.metadata.creationTimestamp ?? ''),
    count: Math.max(1, numberAt(event, 'series', 'count'), numberAt(event, 'count')),
    warning: textAt(event, 'type') === 'Warning',
    reason: textAt(event, 'reason'),
    message: textAt(event, 'message'),
    about,
    source: textAt(event, 'source', 'component') || textAt(event, 'reportingComponent'),
  };
}

/** What the newest Warning says. */
export function newestWarning(events: readonly KubeObject[]): Trouble | undefined {
  const [newest] = events
    .map(eventRow)
    .filter(({ warning }) => warning)
    .sort((a, b) => (a.time === b.time ? (a.key < b.key ? -1 : 1) : a.time > b.time ? -1 : 1));
  return newest && { reason: newest.reason, message: newest.message };
}
