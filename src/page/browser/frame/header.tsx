import { useState } from 'preact/hooks';
import { usePage } from '../parts/page-context.ts';
import { PlaceLink, Sign, Text } from '../parts/words.tsx';
import { placeOf, tabs, withQuery } from '../state/place.ts';
import { applyTheme, storedTheme, themes } from '../state/preferences.ts';
import type { Connection } from '../state/stream.ts';

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
