import { useMemo } from 'preact/hooks';
import type { EventRow } from '../../../view/rows/rows.ts';
import { kubectlLine } from '../parts/command-line.ts';
import { useHeldOrder } from '../parts/held-order.ts';
import { usePage } from '../parts/page-context.ts';
import { Empty, Pending, Toolbar } from '../parts/view-parts.tsx';
import { counted, PlaceLink } from '../parts/words.tsx';
import { withQuery } from '../state/place.ts';
import { EventTable, newestFirst } from './event-table.tsx';

/** Events of all kinds, the newest first. */
export function EventsView() {
  const { rows, place, go, isCurrent } = usePage();
  const { q = '', kind = '', reason = '', show, ns, about } = place.query;
  const all = useMemo(() => newestFirst(rows.all('event')), [rows, rows.version]);
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
            ? counted(all.length, 'Event')
            : `${found.length} of ${counted(all.length, 'Event')}`
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
