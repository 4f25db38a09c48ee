import { Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { TraceAnswer } from '../../messages.ts';
import { boxOf, reachabilityWords, seenText } from '../../../view/pictures/way.ts';
import { dotPicture, mermaidPicture, svgPicture } from '../../../view/pictures/tree-of-boxes.ts';
import type { Picture } from '../parts/export-menu.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { Code, counted, Sign, Text, type Tone } from '../parts/words.tsx';
import { objectOf } from '../state/session.ts';
import { linesOfField } from './yaml-field.ts';

/** The answer of a trace: a ladder from place to place. */

type Traced = TraceAnswer['traces'][number];
type Hop = Traced['hops'][number][number];
type Stage = Hop['stages'][number];

/** How verdicts of stages are shown. */
export const verdicts: Readonly<Record<Stage['verdict'], { readonly sign: string; readonly tone: Tone }>> = {
  pass: { sign: '·', tone: 'quiet' },
  allow: { sign: '✓', tone: 'good' },
  deny: { sign: '✗', tone: 'bad' },
  unknown: { sign: '?', tone: 'warn' },
};

export function wayPictureOf(answer: TraceAnswer, from: string): Picture {
  const box = boxOf(answer, from);
  return { svg: svgPicture(box), mermaid: mermaidPicture(box), dot: dotPicture(box) };
}

export function WayAnswer({ answer, isTable }: { readonly answer: TraceAnswer; readonly isTable: boolean }) {
  const { traces, stages, reachable, proxyOptions } = answer;
  return (
    <div class="answer">
      <Result reachable={reachable} />
      {traces.length === 0 && <StageList stages={stages} />}
      {traces.map((traced) => (
        <Destination
          key={traced.destination}
          traced={traced}
          isTable={isTable}
          hasTitle={traces.length > 1}
        />
      ))}
      {proxyOptions.length > 0 && (
        <details class="proxy">
          <summary>Options of the proxy</summary>
          <ul>
            {proxyOptions.map((option) => (
              <li key={option}>
                <Text>{option}</Text>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function Result({ reachable }: { readonly reachable: boolean | undefined }) {
  const tone = reachable === undefined ? 'warn' : reachable ? 'good' : 'bad';
  return (
    <p class={`result ${tone}`}>
      <Sign tone={tone} sign={reachable === undefined ? '?' : reachable ? '✓' : '✗'} />{' '}
      {reachabilityWords(reachable)}
    </p>
  );
}

function Destination(props: {
  readonly traced: Traced;
  readonly isTable: boolean;
  readonly hasTitle: boolean;
}) {
  const { traced, isTable, hasTitle } = props;
  const { destination, hops, endpoints, packet } = traced;
  const [asked, setChosen] = useState<number>();
  // A real packet took one of the ways.
  const chosen =
    asked ??
    Math.max(
      0,
      hops.findIndex((way) => way.some(({ seen }) => seen !== undefined)),
    );
  const way = hops[Math.min(chosen, hops.length - 1)] ?? [];
  // Of endpoints with equal stages the first few stand for all.
  const groups = [...Map.groupBy(endpoints.keys(), (index) => likenessOf(traced, index)).values()];
  const tone = packet?.outcome === 'connected' ? 'good' : 'bad';
  return (
    <section class="destination" aria-label={destination}>
      {hasTitle && (
        <h2>
          <Text>{destination}</Text>
        </h2>
      )}
      {packet !== undefined && (
        <p class={`packet ${packet.agrees === false ? 'differs' : ''}`}>
          <Sign tone={tone} sign={packet.outcome === 'connected' ? '✓' : '✗'} />{' '}
          <strong>real packet {packet.outcome}</strong> after {packet.milliseconds} ms:{' '}
          <Text>{packet.message}</Text>
          {packet.differsAt !== undefined && `, at: ${packet.differsAt}`}
        </p>
      )}
      {isTable ? (
        <WayTable way={way} />
      ) : (
        <ol class="ladder">
          {way.map((hop, index) => (
            <HopView key={hop.at} hop={hop} isLast={index === way.length - 1} />
          ))}
        </ol>
      )}
      {endpoints.length > 1 && (
        <div class="also">
          <h3>{groups.length > 1 ? 'Endpoints differ' : `One of ${endpoints.length} endpoints is chosen`}</h3>
          <ul>
            {groups.map((group) => (
              <Fragment key={group[0]}>
                {group.slice(0, mostAlike).map((index) => (
                  <Endpoint
                    key={index}
                    endpoint={endpoints[index]}
                    isChosen={index === chosen}
                    onChoose={() => setChosen(index)}
                  />
                ))}
                {group.length > mostAlike && (
                  <li class="muted">
                    and {counted(group.length - mostAlike, 'endpoint')} more, the same way
                  </li>
                )}
              </Fragment>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

/** So many endpoints of one way are named. */
const mostAlike = 6;

function Endpoint(props: {
  readonly endpoint: Traced['endpoints'][number] | undefined;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}) {
  if (props.endpoint === undefined) return null;
  const { address, port, object, reachable } = props.endpoint;
  return (
    <li>
      <button type="button" class="quiet" aria-pressed={props.isChosen} onClick={props.onChoose}>
        <Text>{object ?? address}</Text> <Code>{`${address} port ${port}`}</Code>
      </button>
      <span class={reachable === false ? 'bad' : 'muted'}>{reachabilityWords(reachable)}</span>
    </li>
  );
}

/** What two endpoints have alike whose ways are the same. */
function likenessOf({ endpoints }: Traced, index: number): string {
  const { object, reachable, stages = [] } = endpoints[index] ?? {};
  // Stages that the endpoint itself decides name it.
  const like = stages.map((stage) => ({ ...stage, object: stage.object === object ? '' : stage.object }));
  return JSON.stringify([reachable, like]);
}

function HopView({
  hop: { at, stages, sends, seen },
  isLast,
}: {
  readonly hop: Hop;
  readonly isLast: boolean;
}) {
  const [kind = '', ...name] = at.split(' ');
  const end = stages.some(({ verdict }) => verdict === 'deny');
  return (
    <li class={`hop ${end ? 'ends' : ''}`}>
      <div class="place">
        <p class="at">
          {name.length > 0 && <span class="kind">{kind}</span>}{' '}
          <Text>{name.length > 0 ? name.join(' ') : at}</Text>
        </p>
        {stages.length > 0 && <StageList stages={stages} />}
        {seen !== undefined && (
          <p class={`seen ${seen.agrees ? '' : 'differs'}`}>
            <Sign tone={seen.agrees ? 'good' : 'warn'} sign={seen.agrees ? '✓' : '!'} />{' '}
            <Text>{seenText(seen)}</Text>
          </p>
        )}
      </div>
      {sends !== undefined && !isLast && (
        <p class="sent">
          <Pair changed={sends.changed.includes('source')}>{sends.source}</Pair>
          <span aria-hidden="true"> → </span>
          <span class="hidden">to</span>
          <Pair changed={sends.changed.includes('destination')}>{sends.destination}</Pair>
          {sends.changed.length > 0 && <span class="change">{sends.changed.join(' and ')} changed</span>}
        </p>
      )}
    </li>
  );
}

function Pair({ changed, children }: { readonly changed: boolean; readonly children: string }) {
  return changed ? (
    <strong class="code">
      <Text>{children}</Text>
    </strong>
  ) : (
    <Code>{children}</Code>
  );
}

function StageList({ stages }: { readonly stages: readonly Stage[] }) {
  return (
    <ul class="stages">
      {stages.map((stage, index) => (
        <StageLine key={`${stage.stage} ${index}`} stage={stage} />
      ))}
    </ul>
  );
}

function StageLine({
  stage: { stage, verdict, object = '', field = '', message },
}: {
  readonly stage: Stage;
}) {
  return (
    <li class={`stage ${verdict}`}>
      <span class="stage-name">{stage}</span>
      <span class="verdict">
        <Sign {...verdicts[verdict]} /> {verdict}
      </span>
      <span class="reasoning">
        {object !== '' && (
          <strong>
            <Text>{object}</Text>
          </strong>
        )}{' '}
        {field !== '' && <Code>{field}</Code>} <Text>{message}</Text>
        {verdict === 'deny' && object !== '' && field !== '' && <FieldLines object={object} field={field} />}
      </span>
    </li>
  );
}

/** The lines of the field that decided, as the object has them. @param object `NetworkPolicy shop/catalog`. */
function FieldLines({ object, field }: { readonly object: string; readonly field: string }) {
  const [lines, setLines] = useState('');
  useEffect(() => {
    const [kind = '', key = ''] = object.split(' ');
    const [namespace = '', name] = key.split('/');
    const asked = name === undefined ? objectOf(kind, '', namespace) : objectOf(kind, namespace, name);
    // What cannot be read is left out: object and field are named already.
    asked.then(
      ({ yaml }) => setLines(linesOfField(yaml, field)),
      () => setLines(''),
    );
  }, [object, field]);
  return lines === '' ? null : (
    <pre class="field-lines" tabIndex={0} aria-label={`${object} ${field}`}>
      {lines}
    </pre>
  );
}

/** The same as a table. */
function WayTable({ way }: { readonly way: readonly Hop[] }) {
  const rows = way.flatMap(({ at, stages, sends, seen }) => [
    ...stages.map((stage, index) => ({ key: `${at} ${index}`, at, ...stage })),
    ...(sends === undefined
      ? []
      : [
          {
            key: `${at} sends`,
            at,
            stage: 'sends',
            verdict: 'pass',
            message: `${sends.source} → ${sends.destination}`,
          } as const,
        ]),
    ...(seen === undefined
      ? []
      : [
          {
            ...{ key: `${at} seen`, at, stage: 'real packet', message: seenText(seen) },
            verdict: seen.agrees ? 'pass' : 'unknown',
          } as const,
        ]),
  ]);
  return (
    <Table
      name="the way"
      rows={rows}
      columns={[
        { title: 'At', cell: ({ at }) => <Text>{at}</Text> },
        { title: 'Stage', cell: ({ stage }) => stage },
        {
          title: 'Verdict',
          class: 'nowrap',
          cell: ({ verdict }) => (
            <>
              <Sign {...verdicts[verdict]} /> {verdict}
            </>
          ),
        },
        { title: 'Object', cell: (row) => ('object' in row ? <Text>{row.object ?? ''}</Text> : '') },
        {
          title: 'Field',
          class: 'code',
          cell: (row) => ('field' in row ? <Text>{row.field ?? ''}</Text> : ''),
        },
        { title: 'Message', class: 'wide', cell: ({ message }) => <Text>{message}</Text> },
      ]}
    />
  );
}
