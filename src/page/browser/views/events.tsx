import { useEffect, useMemo, useState } from 'preact/hooks';
import type { EventRow, JournalEntry } from '../../../view/rows/rows.ts';
import { kubectlLine } from '../parts/command-line.ts';
import { useHeldOrder } from '../parts/held-order.ts';
import { usePage } from '../parts/page-context.ts';
import { Empty, Pending, Toolbar } from '../parts/view-parts.tsx';
import { counted, PlaceLink } from '../parts/words.tsx';
import { secondText, withQuery } from '../state/place.ts';
import { journalAnswer } from '../state/session.ts';
import { EventTable, newestFirst, type ShownEvent } from './event-table.tsx';

/** Events of all kinds, with the changes of objects between them, the newest first. */
export function EventsView() {
  const { rows, place, go, isCurrent } = usePage();
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
    <label>
      <span class="hidden">{name} </span>
      <select
        value={chosen}
        onChange={({ currentTarget }) => go(withQuery(place, { [name]: currentTarget.value }))}
      >
        <option value="">{all}</option>
        {choices.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
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
        <label class="check">
          <input
            type="checkbox"
            checked={show === 'warnings'}
            onChange={({ currentTarget }) =>
              go(withQuery(place, { show: currentTarget.checked ? 'warnings' : undefined }))
            }
          />{' '}
          only warnings
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={changes !== '0'}
            onChange={({ currentTarget }) =>
              go(withQuery(place, { changes: currentTarget.checked ? undefined : '0' }))
            }
          />{' '}
          changes
        </label>
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
