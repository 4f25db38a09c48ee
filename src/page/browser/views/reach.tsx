import { useEffect, useRef, useState } from 'preact/hooks';
import { mostReach, type ReachAnswer, type ReachPlanAnswer } from '../../messages.ts';
import { ProtocolSelect, protocols } from '../parts/connection-inputs.tsx';
import { commandLine } from '../parts/command-line.ts';
import { usePage } from '../parts/page-context.ts';
import { Empty, PlaceSelect, Toolbar } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { counted, PlaceLink, Reason, Sign, Text } from '../parts/words.tsx';
import { AnswerError, reachAnswer } from '../state/session.ts';
import { placeOf, secondText, withQuery } from '../state/place.ts';
import { filters, isAskedFor, type Shown, shownCells } from './reach-cells.ts';
import { Deciders, markWords, ReachMatrix, VerdictSign, verdicts, ReachPlan } from './reach-matrix.tsx';

type Asked =
  | { readonly kind: 'answered'; readonly answer: ReachAnswer }
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string };

/** Between two times that the same is asked, where the cluster changes all the time: the longer, the longer it took. */
const restMs = 2000;
const restFactor = 4;
/** It is asked again in any case: rows do not tell all labels. */
const turnMs = 10_000;
/** While a name is typed. */
const typingMs = 200;

/** Who reaches whom in a namespace, and what a policy would change. */
export function ReachView() {
  const { rows, place } = usePage();
  const ns = rows.cluster?.onlyNamespace ?? place.query['ns'];
  return ns === undefined ? <Choice /> : <ReachOf key={ns} ns={ns} />;
}

/** One namespace has to be chosen. */
function Choice() {
  const { rows, place } = usePage();
  const names = rows.all('namespace').toSorted((a, b) => b.pods - a.pods || (a.name < b.name ? -1 : 1));
  return (
    <div class="view reach">
      <Empty sentence="Who reaches whom, and who decides? It is asked of the workloads of one namespace:">
        <ul class="examples">
          {names.map(({ name, pods }) => (
            <li key={name}>
              <PlaceLink to={withQuery(place, { ns: name })}>
                <Text>{name}</Text>
              </PlaceLink>{' '}
              <span class="muted">{counted(pods, 'Pod')}</span>
            </li>
          ))}
        </ul>
      </Empty>
    </div>
  );
}

function ReachOf({ ns }: { readonly ns: string }) {
  const { rows, place, go, width, atMs } = usePage();
  const { from = '', to = '', sel = '', plan, table } = place.query;
  const protocol = protocols.find((each) => each === place.query['protocol']) ?? 'TCP';
  const asked = useAnswer(ns, protocol, from, to);
  const [planned, setPlanned] = useState<ReachPlanAnswer>();
  const answer = asked?.kind === 'answered' ? asked.answer : undefined;
  const isEmpty = answer !== undefined && from === '' && !answer.sources.some(isOfNamespace);
  const hasFlows = rows.all('flowWatch').some(({ state }) => state === 'watching');
  const flags = rows.cluster?.clusterFlags ?? [];
  const command = commandLine(
    ...['servicenet', 'trace', ...flags, '-n', ns, '--matrix'],
    ...(protocol === 'TCP' ? [] : ['--protocol', protocol]),
  );
  const cells = answer === undefined ? [] : shownCells(answer, planned?.changes ?? [], rows.all('flowGroup'));
  const selected = cells.find(({ key }) => key === sel);
  return (
    <div class="view reach">
      <Toolbar summary={<Summary answer={answer} />} name="reach" command={command} hasTable>
        <Filter label="from" value={from} />
        <Filter label="to" value={to} />
        <ProtocolSelect protocol={protocol} isLabelHidden />
        {hasFlows && (
          <PlaceSelect
            {...{ name: 'show', label: 'cells', isLabelHidden: true, class: 'field small' }}
            value={place.query['show'] ?? ''}
            choices={[['', 'all cells'], ...Object.entries(filters)]}
          />
        )}
        <button
          type="button"
          disabled={atMs !== undefined}
          aria-expanded={plan === '1'}
          onClick={() => {
            setPlanned(undefined);
            go(withQuery(place, { plan: plan === '1' ? undefined : '1' }));
          }}
        >
          Plan a policy
        </button>
      </Toolbar>
      {plan === '1' && atMs === undefined && (
        <ReachPlan ns={ns} protocol={protocol} planned={planned} onPlan={(next) => setPlanned(next)} />
      )}
      {asked === undefined && <p class="muted waiting">asking …</p>}
      {asked?.kind === 'refused' && (
        <p class="notice bad" role="alert">
          <Reason word={asked.reason} /> <Text>{asked.message}</Text>
        </p>
      )}
      {isEmpty && (
        <Empty sentence={`There are no Pods with addresses in namespace ${ns}: nobody to compare.`} />
      )}
      {answer !== undefined && !isEmpty && (
        <>
          <Legend hasFlows={hasFlows} />
          {selected !== undefined && <Selection cell={selected} />}
          {table === '1' || width === 'narrow' ? (
            <CellTable cells={cells.filter((cell) => isAskedFor(place.query['show'], cell))} />
          ) : (
            <ReachMatrix answer={answer} cells={cells} selected={sel} />
          )}
        </>
      )}
    </div>
  );
}

function isOfNamespace({ name }: ReachAnswer['sources'][number]): boolean {
  return name !== 'nodes' && !name.startsWith('namespace/');
}

/** The answer to a question; asked again when a policy or a workload is another, and from time to time. */
function useAnswer(ns: string, protocol: string, from: string, to: string): Asked | undefined {
  const { rows, isCurrent, atMs, nowMs } = usePage();
  const [asked, setAsked] = useState<Asked>();
  const latest = useRef(0);
  const askedAt = useRef(0);
  const tookMs = useRef(0);
  const at = atMs === undefined ? undefined : secondText(atMs);
  const question = JSON.stringify([protocol, from, to, at]);
  const asking = useRef(question);
  const changes = JSON.stringify([
    rows.all('policy'),
    rows.all('workload'),
    rows.all('namespace').map(({ name }) => name),
    Math.floor(nowMs / turnMs),
  ]);
  useEffect(() => {
    if (!isCurrent) return undefined;
    const ask = (): void => {
      const number = ++latest.current;
      askedAt.current = Date.now();
      reachAnswer({ namespace: ns, protocol, from, to, ...(at === undefined ? {} : { at }) })
        .then(
          (answer): Asked => ({ kind: 'answered', answer }),
          (cause: unknown): Asked => ({
            kind: 'refused',
            reason: cause instanceof AnswerError ? cause.reason : 'Error',
            message: cause instanceof Error ? cause.message : String(cause),
          }),
        )
        .then(
          (next) => {
            tookMs.current = Date.now() - askedAt.current;
            if (number === latest.current) setAsked(next);
          },
          () => undefined,
        );
    };
    const isSame = question === asking.current;
    asking.current = question;
    const againMs = askedAt.current + Math.max(restMs, restFactor * tookMs.current);
    const waitMs = askedAt.current === 0 ? 0 : isSame ? againMs - Date.now() : typingMs;
    const timer = setTimeout(ask, Math.max(0, waitMs));
    return () => clearTimeout(timer);
  }, [question, changes, isCurrent]);
  return asked;
}

function Summary({ answer }: { readonly answer: ReachAnswer | undefined }) {
  if (answer === undefined) return <>reach</>;
  const { sources, destinations, total } = answer;
  const isCut = total.sources > sources.length || total.destinations > destinations.length;
  return (
    <>
      {counted(total.sources, 'source')}, {counted(total.destinations, 'destination')}
      {isCut && <span class="muted"> · the first {mostReach} of each are shown: narrow them by name</span>}
    </>
  );
}

function Filter({ label, value }: { readonly label: 'from' | 'to'; readonly value: string }) {
  const { place, go } = usePage();
  return (
    <label class="field small reach-filter">
      <span>{label}</span>
      <input
        type="text"
        placeholder="part of a name"
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => go(withQuery(place, { [label]: currentTarget.value }), true)}
      />
    </label>
  );
}

function Legend({ hasFlows }: { readonly hasFlows: boolean }) {
  return (
    <ul class="reach-legend muted">
      {Object.entries(verdicts).map(([verdict, { tone, sign, words }]) =>
        sign === '' ? null : (
          <li key={verdict}>
            <Sign tone={tone} sign={sign} /> {words}
          </li>
        ),
      )}
      {hasFlows && <li>• dropped or refused, ◦ used, in the last 5 minutes</li>}
    </ul>
  );
}

/** What decides the selected cell, and the way of its first connection. */
function Selection({ cell: shown }: { readonly cell: Shown }) {
  const { source, destination, cell, change } = shown;
  const { place, go } = usePage();
  const came = markWords(shown);
  return (
    <section class="reach-selection" aria-label="selected">
      <p class="head">
        <strong>
          <Text>{source}</Text> → <Text>{destination}</Text>
        </strong>
        <button type="button" class="quiet" onClick={() => go(withQuery(place, { sel: undefined }))}>
          close
        </button>
      </p>
      {came !== '' && <p class="muted">{came}</p>}
      {change !== undefined && (
        <p class="muted">
          The plan makes it <VerdictSign verdict={change.after.verdict} /> {change.after.verdict}:
        </p>
      )}
      {change !== undefined && <Deciders cell={change.after} />}
      {change !== undefined && <p class="muted">Now:</p>}
      <Deciders
        cell={cell}
        way={({ from, to }) => (
          <PlaceLink to={placeOf('way', place, { from, to })}>
            Way<span class="hidden"> of this connection</span>
          </PlaceLink>
        )}
      />
    </section>
  );
}

/** The same as a list. */
function CellTable({ cells }: { readonly cells: readonly Shown[] }) {
  const { place } = usePage();
  return (
    <Table
      name="who reaches whom"
      rows={cells.filter(({ cell }) => cell.verdict !== 'unasked')}
      columns={[
        {
          title: 'From',
          class: 'wide',
          cell: ({ key, source }) => (
            <PlaceLink to={withQuery(place, { sel: key })} class="name">
              <Text>{source}</Text>
            </PlaceLink>
          ),
        },
        { title: 'To', class: 'wide', cell: ({ destination }) => <Text>{destination}</Text> },
        {
          title: 'Verdict',
          class: 'short',
          cell: (shown) => (
            <>
              <VerdictSign verdict={shown.cell.verdict} /> {shown.cell.verdict}
              {shown.change !== undefined && ` → ${shown.change.after.verdict}`}
              <span class="muted came">{markWords(shown)}</span>
            </>
          ),
        },
        { title: 'Decided by', class: 'wide', cell: ({ cell }) => <Deciders cell={cell} /> },
      ]}
    />
  );
}
