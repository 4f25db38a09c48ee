import type { EventRow } from '../../../view/rows/rows.ts';
import { usePage } from '../parts/page-context.ts';
import { Age, ObjectLink, PlaceLink, Reason, Text } from '../parts/words.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { secondText, withQuery } from '../state/place.ts';

/** The newest first. */
export function newestFirst(events: readonly ShownEvent[]): readonly ShownEvent[] {
  return events.toSorted((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : a.key < b.key ? -1 : 1));
}

/** An Event, or a change of an object in the place of one. */
export interface ShownEvent extends EventRow {
  readonly isChange?: boolean;
}

/** Events in the order in which they are given. Their times lead to the cluster as it was then. */
export function EventTable({ events }: { readonly events: readonly ShownEvent[] }) {
  const { rows, place } = usePage();
  const sinceMs = Date.parse(rows.get('journal', 'journal')?.knownSince ?? '');
  const when = (time: string) => {
    // What happened in that second is seen.
    const ms = Math.floor(Date.parse(time) / 1000) * 1000 + 1000;
    if (!(ms > sinceMs)) return <Age time={time} />;
    return (
      <PlaceLink to={withQuery(place, { at: secondText(ms) })} title="the cluster as it was then">
        <Age time={time} />
      </PlaceLink>
    );
  };
  return (
    <Table
      name="Events"
      class="events"
      rows={events}
      rowClass={({ warning }) => (warning ? 'warning' : '')}
      columns={[
        { title: 'Last', class: 'short', cell: ({ time }) => when(time) },
        {
          title: 'Reason',
          cell: ({ reason, warning, isChange }) =>
            isChange === true ? (
              <span class="muted">{reason}</span>
            ) : (
              <Reason word={reason} tone={warning ? 'bad' : 'quiet'} />
            ),
        },
        { title: 'About', class: 'about', cell: ({ about }) => <ObjectLink of={about} /> },
        {
          title: 'Message',
          class: 'wide',
          cell: ({ message, count }) => (
            <span title={message}>
              <Text>{message}</Text>
              {count > 1 && <span class="muted"> ×{count}</span>}
            </span>
          ),
        },
      ]}
    />
  );
}
