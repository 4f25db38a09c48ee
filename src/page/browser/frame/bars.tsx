import { useState, useEffect } from 'preact/hooks';
import { usePage } from '../parts/page-context.ts';
import { PlaceLink, Sign, Text, age, ObjectLink } from '../parts/words.tsx';
import { placeOf, tabs, withQuery, secondText } from '../state/place.ts';
import { applyTheme, storedTheme, themes } from '../state/preferences.ts';
import type { Connection } from '../state/stream.ts';
import { maxOf } from '../../../objects/lists.ts';
import type { JournalEntry, JournalRow } from '../../../view/rows/rows.ts';
import { AnswerError, journalAnswer } from '../state/session.ts';

/** The names of the views. */
export const titles = {
  map: 'Map',
  reach: 'Reach',
  way: 'Way',
  flows: 'Flows',
  addresses: 'Addresses',
  http: 'HTTP',
  events: 'Events',
} as const;

/** The top of the page: cluster, namespace, search, problems, state, tabs. */
export function Header(props: {
  readonly connection: Connection;
  readonly isOpen: boolean;
  readonly onProblems: () => void;
  readonly onHelp: () => void;
}) {
  const { rows, place } = usePage();
  const problems = rows.all('problem').length;
  const isReading = rows.status.loading.length > 0;
  return (
    <header class="frame">
      <div class="bar">
        <PlaceLink to={{ view: 'map', query: {} }} class="brand">
          <Mark />
          servicenet
        </PlaceLink>
        <span class="server code" title={rows.cluster?.version}>
          <Text>{(rows.cluster?.server ?? '').replace(/^https?:\/\//, '')}</Text>
        </span>
        <Namespace />
        <Search />
        <button
          type="button"
          class={`problem-count ${problems > 0 ? 'some' : ''}`}
          aria-expanded={props.isOpen}
          onClick={props.onProblems}
        >
          <Sign
            tone={problems > 0 ? 'bad' : isReading ? 'quiet' : 'good'}
            sign={problems > 0 ? '!' : isReading ? '…' : '✓'}
          />{' '}
          {problems > 0 && problems}
          <span class="word">
            {problems === 0 ? 'no problems' : problems === 1 ? ' problem' : ' problems'}
            {isReading && ' yet'}
          </span>
        </button>
        <Live connection={props.connection} />
        <ThemeButton />
        <button type="button" class="quiet icon" onClick={props.onHelp}>
          <span aria-hidden="true">?</span>
          <span class="hidden">keys and settings</span>
        </button>
      </div>
      <nav aria-label="views">
        {tabs.map((tab) => (
          <PlaceLink key={tab} to={placeOf(tab, place)} class={place.view === tab ? 'tab current' : 'tab'}>
            <span aria-current={place.view === tab ? 'page' : undefined}>{titles[tab]}</span>
          </PlaceLink>
        ))}
        {place.service !== undefined && (
          <span class="tab current of-service" aria-current="page">
            <Text>{`${place.service.namespace}/${place.service.name}`}</Text>
          </span>
        )}
      </nav>
    </header>
  );
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <path d="M4 10H8C12 10 11 4 15 4M8 10H15M8 10C12 10 11 16 15 16" />
      <circle cx="4" cy="10" r="2.4" />
      <circle cx="16" cy="4" r="1.9" />
      <circle cx="16" cy="10" r="1.9" />
      <circle cx="16" cy="16" r="1.9" />
    </svg>
  );
}

function Namespace() {
  const { rows, place, go } = usePage();
  const only = rows.cluster?.onlyNamespace;
  const chosen = only ?? place.service?.namespace ?? place.query['ns'] ?? '';
  const names = rows
    .all('namespace')
    .map(({ name }) => name)
    .toSorted();
  const all = chosen === '' || names.includes(chosen) ? names : [...names, chosen];
  return (
    <label class="namespace">
      <span>namespace</span>
      <select
        value={chosen}
        disabled={only !== undefined}
        onChange={({ currentTarget: { value } }) => {
          const to = place.service === undefined ? place : placeOf('map', place);
          go(withQuery(to, { ns: value, sel: undefined }));
        }}
      >
        <option value="">all</option>
        {all.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Filters the view; from a view that has no list, Enter leads to the Map. */
function Search() {
  const { place, go } = usePage();
  const [typed, setTyped] = useState('');
  const isHere = place.view !== 'way' && place.view !== 'reach' && place.view !== 'service';
  const value = isHere ? (place.query['q'] ?? '') : typed;
  return (
    <form
      role="search"
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isHere && typed !== '') go(placeOf('map', place, { q: typed }));
      }}
    >
      <label>
        <span class="hidden">search objects, addresses, labels, reasons</span>
        <input
          id="search"
          type="search"
          placeholder="Search"
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={({ currentTarget }) => {
            setTyped(currentTarget.value);
            if (isHere) go(withQuery(place, { q: currentTarget.value }), true);
          }}
        />
      </label>
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

function Live({ connection }: { readonly connection: Connection }) {
  const { rows, isCurrent, atMs } = usePage();
  const isCut = connection.kind === 'cut' || rows.status.disconnected !== undefined;
  const isLoading = connection.kind === 'connecting' || !isCurrent || rows.status.loading.length > 0;
  const [tone, sign, word] = isCut
    ? (['bad', '○', 'cut off'] as const)
    : isLoading
      ? (['warn', '◐', 'loading'] as const)
      : atMs !== undefined
        ? (['warn', '◷', 'past'] as const)
        : (['good', '●', 'live'] as const);
  return (
    <span class="live">
      <Sign tone={tone} sign={sign} /> <span>{word}</span>
    </span>
  );
}

const themeSigns = { system: '◐', light: '☼', dark: '☾' } as const;

function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system';
  return (
    <button
      type="button"
      class="quiet icon"
      title={`colours: ${theme}`}
      onClick={() => {
        applyTheme(next);
        setTheme(next);
      }}
    >
      <span aria-hidden="true">{themeSigns[theme]}</span>
      <span class="hidden">
        colours: {theme}; change to {next}
      </span>
    </button>
  );
}

/** Sizes of the picture of what happened, in the units of its view box. */
const height = 24;
const width = 1000;

/**
 * The last hour at the bottom of the page: what happened when, and the way back there. Seconds are the steps: what happened
 * in one second is seen together.
 */
export function TimeBar() {
  const { rows, place, go, atMs, clockMs, announce } = usePage();
  const journal = rows.get('journal', 'journal');
  const lastMs = atMs ?? clockMs;
  const last = useLastChange(journal, atMs);
  const [draggedMs, setDragged] = useState<number>();
  if (journal?.knownSince === undefined) return null;
  const sinceMs = Math.ceil(Date.parse(journal.knownSince) / 1000) * 1000;
  const nowMs = Math.max(Math.floor(clockMs / 1000) * 1000, sinceMs + 1000);
  const show = (ms: number | undefined): void =>
    go(withQuery(place, { at: ms === undefined ? undefined : secondText(Math.max(ms, sinceMs)) }));
  const step = (side: 'before' | 'after'): void => {
    changeNextTo(lastMs, side, atMs === undefined).then(
      (ms) => {
        if (ms !== undefined) show(ms < Date.now() ? ms : undefined);
        else announce(side === 'before' ? 'No change before is known.' : 'Nothing has changed since.');
      },
      (cause: unknown) => announce(cause instanceof AnswerError ? cause.message : String(cause)),
    );
  };
  const shownMs = draggedMs ?? Math.min(atMs ?? nowMs, nowMs);
  const words =
    shownMs >= nowMs ? 'now' : `${clock(shownMs)}, ${age(new Date(shownMs).toISOString(), nowMs)} ago`;
  return (
    <footer class={`time-bar ${atMs === undefined ? '' : 'past'}`} aria-label="time">
      <button type="button" class="quiet icon before" onClick={() => step('before')}>
        <span aria-hidden="true">◀</span>
        <span class="hidden">before the last change</span>
      </button>
      <span class="since">{clock(sinceMs)}</span>
      <span class="hour">
        <Happened journal={journal} sinceMs={sinceMs} nowMs={nowMs} />
        <input
          type="range"
          min={sinceMs / 1000}
          max={nowMs / 1000}
          value={shownMs / 1000}
          aria-label="time that is shown"
          aria-valuetext={words}
          onInput={({ currentTarget }) => setDragged(Number(currentTarget.value) * 1000)}
          onChange={({ currentTarget }) => {
            setDragged(undefined);
            const ms = Number(currentTarget.value) * 1000;
            show(ms < nowMs ? ms : undefined);
          }}
        />
      </span>
      <span class="shown">{words}</span>
      <button
        type="button"
        class="quiet icon after"
        disabled={atMs === undefined}
        onClick={() => step('after')}
      >
        <span aria-hidden="true">▶</span>
        <span class="hidden">after the next change</span>
      </button>
      {atMs !== undefined && (
        <button type="button" class="to-live" onClick={() => show(undefined)}>
          <kbd aria-hidden="true">.</kbd> live
        </button>
      )}
      <span class="last">
        {place.view === 'flows' ? (
          <span class="muted">flows are those of now</span>
        ) : (
          last !== undefined && <LastChange entry={last} />
        )}
      </span>
    </footer>
  );
}

function LastChange({ entry }: { readonly entry: JournalEntry }) {
  const { time, change, text, cause } = entry;
  return (
    <>
      {clock(Date.parse(time))} <ObjectLink of={entry} /> <Text>{text === '' ? change : text}</Text>
      {cause !== undefined && (
        <>
          {' '}
          (<Text>{cause.reason}</Text>)
        </>
      )}
    </>
  );
}

/** The last change up to the time that is shown. */
function useLastChange(journal: JournalRow | undefined, atMs: number | undefined): JournalEntry | undefined {
  const [last, setLast] = useState<JournalEntry>();
  const isKnown = journal?.knownSince !== undefined;
  useEffect(() => {
    if (!isKnown) return undefined;
    let isWanted = true;
    journalAnswer({ most: '1', ...(atMs === undefined ? {} : { to: secondText(atMs) }) }).then(
      ({ changes: [newest] }) => {
        if (isWanted) setLast(newest);
      },
      // The stream says that the server does not answer.
      () => undefined,
    );
    return () => {
      isWanted = false;
    };
  }, [isKnown, atMs, atMs === undefined ? journal : undefined]);
  return last;
}

/** The second before the last change, or that in which the next one is seen; undefined: none is known. */
async function changeNextTo(
  ms: number,
  side: 'before' | 'after',
  isLive: boolean,
): Promise<number | undefined> {
  const time = isLive ? {} : { [side === 'before' ? 'to' : 'from']: secondText(ms) };
  const { changes } = await journalAnswer({ ...time, most: '1' });
  const changedMs = changes[0] === undefined ? undefined : Date.parse(changes[0].time);
  if (changedMs === undefined) return undefined;
  const seenMs = Math.ceil(changedMs / 1000) * 1000;
  return side === 'before' ? seenMs - 1000 : seenMs;
}

/** Changes as columns, Warnings as marks above them. */
function Happened(props: { readonly journal: JournalRow; readonly sinceMs: number; readonly nowMs: number }) {
  const { journal, sinceMs, nowMs } = props;
  const most = Math.max(1, maxOf(journal.buckets.map(({ changes }) => changes)));
  const x = (ms: number): number =>
    Math.min(width, Math.max(0, ((ms - sinceMs) / (nowMs - sinceMs)) * width));
  return (
    <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {journal.buckets.map(({ time, changes, warnings }) => {
        const from = x(Date.parse(time));
        const wide = Math.max(1, x(Date.parse(time) + bucketMs) - from - 1);
        const high = changes === 0 ? 0 : Math.max(2, Math.sqrt(changes / most) * (height - 6));
        return (
          <g key={time}>
            <rect class="changes" x={from} y={height - high} width={wide} height={high} />
            {warnings > 0 && <rect class="warnings" x={from} y={0} width={wide} height={3} />}
          </g>
        );
      })}
    </svg>
  );
}

/** Milliseconds of the buckets of a {@link JournalRow}. */
const bucketMs = 30_000;

/** `20:41:05`, where the browser is. */
function clock(ms: number): string {
  const time = new Date(ms);
  return [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}
