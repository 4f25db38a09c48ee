import type { EventRow } from '../../../view/rows/rows.ts';
import { Age, ObjectLink, Reason, Text } from '../parts/words.tsx';
import { Table } from '../parts/virtual-list.tsx';

/** The newest first. */
export function newestFirst(events: readonly EventRow[]): readonly EventRow[] {
  return events.toSorted((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : a.key < b.key ? -1 : 1));
}

/** Events in the order in which they are given. */
export function EventTable({ events }: { readonly events: readonly EventRow[] }) {
  return (
    <Table
      name="Events"
      class="events"
      rows={events}
      rowClass={({ warning }) => (warning ? 'warning' : '')}
      columns={[
        { title: 'Last', class: 'short', cell: ({ time }) => <Age time={time} /> },
        {
          title: 'Reason',
          cell: ({ reason, warning }) => <Reason word={reason} tone={warning ? 'bad' : 'quiet'} />,
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
