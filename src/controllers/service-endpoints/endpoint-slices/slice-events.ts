import type { Informer } from '../../../client/informers/informer.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { joinKey, type ObjectKey } from '../../../objects/key.ts';
import type { EnqueueOptions } from '../../../runtime/controller.ts';
import { managedByLabel, serviceNameLabel } from './slice-metadata.ts';
import type { SliceTracker } from './slice-tracker.ts';

/** The input of {@link followSlices}. */
export interface SliceEvents {
  readonly slices: Informer<EndpointSlice>;
  /** The value of the managed-by label on the controller's own slices. */
  readonly managedBy: string;
  readonly tracker: SliceTracker;
  /** Milliseconds of delay after a change by others, to batch several. */
  readonly delay: number;
  /** Whether the slices that exist at the start count as changed. */
  readonly fromStart: boolean;
  readonly enqueue: (key: ObjectKey, options?: EnqueueOptions) => void;
}

/**
 * Enqueues the owner of a slice when another client changed the slice: its content or labels (the generation), its
 * Service or its manager. The event of an own write enqueues it only when a reconcile waits for it.
 */
export function followSlices(events: SliceEvents): void {
  const { slices, managedBy, tracker, delay, fromStart, enqueue } = events;
  const isOurs = (slice: EndpointSlice): boolean => slice.metadata.labels?.[managedByLabel] === managedBy;
  const changed = (slice: EndpointSlice): void => {
    const key = ownerKey(slice);
    if (key !== undefined) enqueue(key, { after: delay });
  };
  const seen = (slice: EndpointSlice, how: 'arrived' | 'gone'): void => {
    const key = ownerKey(slice);
    if (key === undefined || !isOurs(slice)) return;
    const meaning = tracker[how](key, slice);
    if (meaning === 'change') enqueue(key, { after: delay });
    else if (meaning === 'awaited') enqueue(key);
  };
  slices.addHandler({
    added: (slice, initial) => {
      if (fromStart || !initial) seen(slice, 'arrived');
    },
    updated: (slice, old) => {
      if (ownerKey(slice) !== ownerKey(old)) {
        changed(slice);
        changed(old);
      } else if (isOurs(slice) !== isOurs(old)) {
        changed(slice);
      } else {
        seen(slice, 'arrived');
      }
    },
    deleted: (slice) => seen(slice, 'gone'),
  });
}

/** The key of the Service that a slice names. */
function ownerKey({ metadata }: EndpointSlice): ObjectKey | undefined {
  const name = metadata.labels?.[serviceNameLabel];
  return name === undefined || name === '' ? undefined : joinKey(metadata.namespace ?? '', name);
}
