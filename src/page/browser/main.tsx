import { render } from 'preact';
import { applyTheme, storedTheme } from './state/preferences.ts';
import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { Follow } from '../messages.ts';
import { Explanation, Prose } from './frame/explanation.tsx';
import { Header, titles, TimeBar } from './frame/bars.tsx';
import { KeyHelp, useKeys } from './frame/keys.tsx';
import { type PageContext, PageProvider, usePage } from './parts/page-context.ts';
import { formatPlace, parsePlace, type Place, secondText, timeOf, withQuery } from './state/place.ts';
import { eraseSession, openSession } from './state/session.ts';
import { Stream, type Connection } from './state/stream.ts';
import { AddressesView } from './views/addresses.tsx';
import { EventsView } from './views/events.tsx';
import { FlowsView, followedFlows } from './views/flows.tsx';
import { HttpView } from './views/http.tsx';
import { MapView } from './views/map.tsx';
import { ReachView } from './views/reach.tsx';
import { ServiceView } from './views/service.tsx';
import { WayView } from './views/way.tsx';
import { Command } from './parts/commands.tsx';
import { RowStore } from './state/row-store.ts';
import { reasonTextOf } from './parts/reason-texts.ts';
import { Age, ObjectLink, Reason, Text, PlaceLink, age, digits } from './parts/words.tsx';

const views = {
  reach: ReachView,
  flows: FlowsView,
  ...{ map: MapView, service: ServiceView, way: WayView, addresses: AddressesView },
  ...{ http: HttpView, events: EventsView },
};

/** The whole page: asks for a session, then shows the place that the URL says. */
function Page() {
  const [session, setSession] = useState<{
    readonly session: string | undefined;
    readonly problem?: string;
  }>();
  useEffect(() => {
    const open = (): void => {
      openSession().then(
        (found) => setSession({ session: found }),
        (cause: unknown) =>
          setSession({ session: undefined, problem: cause instanceof Error ? cause.message : '' }),
      );
    };
    open();
    // A link that is pasted into a tab of this page only changes its fragment.
    addEventListener('hashchange', open);
    return () => removeEventListener('hashchange', open);
  }, []);
  if (session === undefined) return null;
  if (session.session === undefined)
    return <NoSession {...(session.problem === undefined ? {} : { problem: session.problem })} />;
  const of = session.session;
  const end = (): void => {
    eraseSession(of);
    openSession().then(
      (session) =>
        setSession({ session, problem: 'The server of this page does not know this browser (any more).' }),
      () => setSession({ session: undefined }),
    );
  };
  return <LivePage key={of} session={of} onEnd={end} />;
}

/** However often it is called, what is seen is drawn once. */
function oncePerFrame(draw: () => void): () => void {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
}

/** The rows that a place needs. */
function followOf(place: Place): Follow {
  const atMs = timeOf(place);
  return { ...rowsOf(place), ...(atMs === undefined ? {} : { at: secondText(atMs) }) };
}

function rowsOf({ view, service, query }: Place): Follow {
  const { ns, all } = query;
  if (service !== undefined) return { view, ...service };
  if (view === 'flows')
    return { view, ...(ns === undefined ? {} : { namespace: ns }), flows: followedFlows(query) };
  if (ns !== undefined) return { view, namespace: ns };
  return view === 'map' && all === '1' ? { view, all: true } : { view };
}

function LivePage({ session, onEnd }: { readonly session: string; readonly onEnd: () => void }) {
  const [place, setPlace] = useState(() => parsePlace(location.pathname, location.search));
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const stream = useMemo(
    () =>
      new Stream(
        session,
        followOf(place),
        oncePerFrame(() => redraw(undefined)),
      ),
    [session],
  );
  const [clockMs, setClockMs] = useState(Date.now());
  const [refresh, refreshNow] = useReducer((count: number) => count + 1, 0);
  const [reason, explain] = useState<string>();
  const [open, setOpen] = useState<'problems' | 'keys'>();
  const [said, announce] = useState('');
  const main = useRef<HTMLElement>(null);
  const width = useWidth();

  useEffect(() => {
    const timer = setInterval(() => setClockMs(Date.now()), 1000);
    const onPopState = (): void => setPlace(parsePlace(location.pathname, location.search));
    addEventListener('popstate', onPopState);
    return () => {
      clearInterval(timer);
      removeEventListener('popstate', onPopState);
    };
  }, []);
  useEffect(() => () => stream.close(), [stream]);
  useEffect(() => stream.follow(followOf(place)), [stream, place]);
  useEffect(() => {
    document.title = titleOf(place);
  }, [place]);
  useEffect(() => {
    const timer = setTimeout(() => announce(''), 4000);
    return () => clearTimeout(timer);
  }, [said]);

  const { connection } = stream;
  const isEnded = connection.kind === 'no session';
  useEffect(() => {
    if (isEnded) onEnd();
  }, [isEnded]);

  const atMs = timeOf(place);
  const page: PageContext = {
    ...{ rows: stream.rows, isCurrent: stream.isCurrent, place, explain, announce, width },
    ...{ atMs, nowMs: atMs ?? clockMs, clockMs },
    ...{ refresh, refreshNow: () => refreshNow(undefined) },
    go: (to, isReplacing = false) => {
      const url = formatPlace(to);
      if (isReplacing) history.replaceState(undefined, '', url);
      else history.pushState(undefined, '', url);
      setPlace(to);
      if (to.view === place.view && to.service?.name === place.service?.name) return;
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    },
  };
  useKeys(page, {
    problems: () => setOpen(open === 'problems' ? undefined : 'problems'),
    help: () => setOpen('keys'),
    close: () => setOpen(undefined),
  });
  const View = views[place.view];
  const isStale = connection.kind === 'cut' || stream.rows.status.disconnected !== undefined;
  return (
    <PageProvider value={page}>
      <a class="skip" href="#main">
        to the view
      </a>
      <Header
        connection={connection}
        isOpen={open === 'problems'}
        onProblems={() => setOpen(open === 'problems' ? undefined : 'problems')}
        onHelp={() => setOpen('keys')}
      />
      {open === 'problems' && <Problems />}
      <StateBands connection={connection} />
      <main id="main" ref={main} tabIndex={-1} class={isStale ? 'stale' : ''} aria-busy={!stream.isCurrent}>
        {stream.rows.cluster === undefined ? (
          <p class="muted waiting">reading the cluster …</p>
        ) : (
          <View key={place.view} />
        )}
      </main>
      <TimeBar />
      {reason !== undefined && <Explanation reason={reason} onClose={() => explain(undefined)} />}
      {open === 'keys' && <KeyHelp onClose={() => setOpen(undefined)} />}
      <p role="status" class={said === '' ? 'hidden' : 'toast'}>
        {said}
      </p>
    </PageProvider>
  );
}

function titleOf({ view, service }: Place): string {
  const names = { ...titles, service: 'Service' };
  return `${service === undefined ? names[view] : `${service.namespace}/${service.name}`} · servicenet`;
}

function useWidth(): PageContext['width'] {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const look = (): void => setWidth(innerWidth);
    addEventListener('resize', look);
    return () => removeEventListener('resize', look);
  }, []);
  return width >= 1100 ? 'wide' : width >= 720 ? 'medium' : 'narrow';
}

/** Shown instead of the page without a session. The URL stays: the new link may be pasted into this tab. */
function NoSession({ problem }: { readonly problem?: string }) {
  const nothing = (): void => undefined;
  const page = {
    ...{
      rows: new RowStore(),
      isCurrent: false,
      place: parsePlace('/', ''),
      atMs: undefined,
      clockMs: 0,
      nowMs: 0,
      refresh: 0,
    },
    ...{ go: nothing, explain: nothing, announce: nothing, refreshNow: nothing, width: 'wide' as const },
  };
  return (
    <PageProvider value={page}>
      <main class="no-session">
        <h1>servicenet</h1>
        {problem !== undefined && problem !== '' && <p>{problem}</p>}
        <p>
          This page opens with a link, which holds a key. Where <code>servicenet up</code> runs, this prints
          it:
        </p>
        <Command line="servicenet page" />
        <p class="muted">
          Open the link in this tab to see what its address says; a bookmark of the page needs no key.
        </p>
      </main>
    </PageProvider>
  );
}

/** What is wrong, the newest cause first: word, object, sentence, what to do. */
function Problems() {
  const { rows } = usePage();
  const problems = rows
    .all('problem')
    .toSorted((a, b) => (b.since ?? '').localeCompare(a.since ?? '') || a.key.localeCompare(b.key));
  return (
    <section class="problems" aria-label="problems">
      {problems.length === 0 ? (
        <p class="muted">No problems.</p>
      ) : (
        <ul>
          {problems.map(({ key, reason, message, about, since }) => {
            const whatToDo = reasonTextOf(reason)?.whatToDo ?? '';
            return (
              <li key={key}>
                <p>
                  <Reason word={reason} /> <ObjectLink of={about} />{' '}
                  <span class="muted">
                    <Age time={since} />
                  </span>
                </p>
                <p>
                  <Text>{message}</Text>
                </p>
                {whatToDo !== '' && (
                  <p class="muted">
                    <Prose text={whatToDo} />
                  </p>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}

/** Bands above the view: what is loading, cut off, or may not be read. */
function StateBands({ connection }: { readonly connection: Connection }) {
  const { rows, place, isCurrent, atMs, clockMs } = usePage();
  const { loading, forbidden, disconnected, knownSince } = rows.status;
  const toNow = <PlaceLink to={withQuery(place, { at: undefined })}>Back to now</PlaceLink>;
  const ended = rows.cluster?.kind === 'kubeconfig' ? '`servicenet page`' : '`servicenet up`';
  return (
    <>
      {connection.kind === 'cut' && (
        <p class="band bad" role="alert">
          <strong>
            {ended.replaceAll('`', '')} does not answer: it has ended, or is being started again.
          </strong>{' '}
          Since {age(new Date(connection.sinceMs).toISOString(), clockMs)}; next try{' '}
          {Math.max(0, Math.ceil((connection.retryMs - clockMs) / 1000))} s. What you see is as it was{' '}
          <Age time={rows.at} /> ago.
        </p>
      )}
      {connection.kind === 'live' && disconnected !== undefined && (
        <p class="band bad" role="alert">
          <strong>
            <Text>{disconnected.message}</Text>
          </strong>{' '}
          Since <Age time={disconnected.since} />. What you see is the last known state.
        </p>
      )}
      {atMs !== undefined && isCurrent && (
        <p class="band warn" role="status">
          {knownSince === undefined ? (
            <>
              The cluster as it was at <time dateTime={rows.at}>{rows.at}</time>, {age(rows.at, clockMs)}{' '}
              ago.{' '}
            </>
          ) : (
            <>
              Nothing is known of before <time dateTime={knownSince}>{knownSince}</time>: since then somebody
              looks.{' '}
            </>
          )}
          {toNow}
        </p>
      )}
      {loading.length > 0 && (
        <p class="band" role="status">
          Loading{' '}
          {loading
            .map(({ kind, read, total }) =>
              total === undefined
                ? `${kind}s ${digits(read)}`
                : `${kind}s ${digits(read)} of ${digits(total)}`,
            )
            .join(', ')}
        </p>
      )}
      {forbidden.length > 0 && (
        <p class="band warn">
          May not be listed with these credentials: <strong>{forbidden.join(', ')}</strong>. What depends on
          them is not known.
        </p>
      )}
    </>
  );
}

applyTheme(storedTheme());
const root = document.getElementById('page');
if (root !== null) render(<Page />, root);
