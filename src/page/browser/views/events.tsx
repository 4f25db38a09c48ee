import type { EventRow, JournalEntry } from '../../../view/rows/rows.ts';
import { usePage } from '../parts/page-context.ts';
import { Age, ObjectLink, PlaceLink, Reason, Text, counted } from '../parts/words.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { secondText, withQuery } from '../state/place.ts';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { kubectlLine } from '../parts/command-line.ts';
import { useHeldOrder } from '../parts/held-order.ts';
import { Empty, Pending, PlaceCheck, PlaceSelect, Toolbar } from '../parts/view-parts.tsx';
import { journalAnswer } from '../state/session.ts';

/** The newest first. */
export function newestFirst(events: readonly ShownEvent[]): readonly ShownEvent[] {
  return events.toSorted((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : a.key < b.key ? -1 : 1));
}

/** An Event, or a change of an object in the place of one. */
interface ShownEvent extends EventRow {
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

/** Events of all kinds, with the changes of objects between them, the newest first. */
export function EventsView() {
  const { rows, place, isCurrent } = usePage();
  const { q = '', kind = '', reason = '', show, changes, ns, about } = place.query;
  const made = useChanges(changes !== '0');
  const all = useMemo(() => {
    const shown = made.filter((row) => ns === undefined || row.about.namespace === ns);
    return newestFirst([...rows.all('event'), ...shown]);
  }, [rows, rows.version, made, ns]);
  const found = all.filter(
    (event) =>
      (show !== 'warnings' || event.warning) &&
      (kind === '' || event.about.kind === kind) &&
      (reason === '' || event.reason === reason) &&
      (about === undefined || aboutOf(event) === about) &&
      isFound(event, q),
  );
  const held = useHeldOrder(found);
  const kinds = [...new Set(all.map((event) => event.about.kind))].toSorted();
  const reasons = [...new Set(all.map((event) => event.reason))].toSorted();
  const choose = (name: 'kind' | 'reason', chosen: string, choices: readonly string[], all: string) => (
    <PlaceSelect
      {...{ name, label: name, isLabelHidden: true, value: chosen }}
      choices={[['', all], ...choices.map((each) => [each, each] as const)]}
    />
  );
  return (
    <div class="view events-view">
      <Toolbar
        summary={
          found.length === all.length
            ? counted(all.length, 'Event or change', 'Events and changes')
            : `${found.length} of ${counted(all.length, 'Event or change', 'Events and changes')}`
        }
        name="events"
        command={kubectlLine(
          rows.cluster,
          'get',
          'events',
          ...(ns === undefined ? ['-A'] : ['-n', ns]),
          '--sort-by=.lastTimestamp',
        )}
      >
        {choose('kind', kind, kinds, 'all kinds')}
        {choose('reason', reason, reasons, 'all reasons')}
        <PlaceCheck name="show" on="warnings">
          only warnings
        </PlaceCheck>
        <PlaceCheck name="changes" off="0">
          changes
        </PlaceCheck>
        {about !== undefined && (
          <PlaceLink to={withQuery(place, { about: undefined })} class="button">
            about {about} ✕
          </PlaceLink>
        )}
        <Pending count={held.pending} />
      </Toolbar>
      {found.length === 0 && isCurrent ? (
        <Empty sentence={all.length === 0 ? 'Nothing in the last hour.' : 'No Event is like this.'} />
      ) : (
        <div {...held.hold}>
          <EventTable events={held.rows} />
        </div>
      )}
    </div>
  );
}

/** The newest changes of objects. @param isWanted none, where they are not. */
function useChanges(isWanted: boolean): readonly ShownEvent[] {
  const { rows, atMs } = usePage();
  const journal = rows.get('journal', 'journal');
  const [found, setFound] = useState<readonly ShownEvent[]>([]);
  const isAsked = isWanted && journal?.knownSince !== undefined;
  useEffect(() => {
    let isDue = true;
    if (!isAsked) setFound([]);
    else {
      journalAnswer(atMs === undefined ? {} : { to: secondText(atMs) }).then(
        ({ changes }) => {
          if (isDue) setFound(changes.map(changeAsEvent));
        },
        // The stream says that the server does not answer.
        () => undefined,
      );
    }
    return () => {
      isDue = false;
    };
  }, [isAsked, atMs, atMs === undefined ? journal : undefined]);
  return found;
}

function changeAsEvent({ time, kind, namespace, name, change, text }: JournalEntry): ShownEvent {
  return {
    ...{ key: `${time} ${kind} ${namespace}/${name}`, time, count: 1, warning: false, isChange: true },
    ...{ reason: change, message: text, about: { kind, namespace, name }, source: '' },
  };
}

/** `service/shop/web`, as in `/events?about=`. */
function aboutOf({ about: { kind, namespace, name } }: EventRow): string {
  return [kind.toLowerCase(), namespace, name].filter((part) => part !== '').join('/');
}

function isFound(event: EventRow, search: string): boolean {
  const { reason, message, source } = event;
  const text = [reason, message, source, aboutOf(event)].join('\n').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
