import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { Follow } from '../messages.ts';
import { Explanation } from './frame/explanation.tsx';
import { Header } from './frame/header.tsx';
import { KeyHelp, useKeys } from './frame/keys.tsx';
import { NoSession } from './frame/no-session.tsx';
import { Problems } from './frame/problems.tsx';
import { StateBands } from './frame/state-bands.tsx';
import { TimeBar } from './frame/time-bar.tsx';
import { type PageContext, PageProvider } from './parts/page-context.ts';
import { formatPlace, parsePlace, type Place, secondText, timeOf } from './state/place.ts';
import { eraseSession, openSession } from './state/session.ts';
import { Stream } from './state/stream.ts';
import { AddressesView } from './views/addresses.tsx';
import { EventsView } from './views/events.tsx';
import { FlowsView, followedFlows } from './views/flows.tsx';
import { HttpView } from './views/http.tsx';
import { MapView } from './views/map.tsx';
import { ReachView } from './views/reach.tsx';
import { ServiceView } from './views/service.tsx';
import { WayView } from './views/way.tsx';

const views = {
  reach: ReachView,
  flows: FlowsView,
  ...{ map: MapView, service: ServiceView, way: WayView, addresses: AddressesView },
  ...{ http: HttpView, events: EventsView },
};

/** The whole page: asks for a session, then shows the place that the URL says. */
export function Page() {
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
  const names = {
    map: 'Map',
    service: 'Service',
    reach: 'Reach',
    way: 'Way',
    flows: 'Flows',
    addresses: 'Addresses',
    http: 'HTTP',
    events: 'Events',
  };
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
