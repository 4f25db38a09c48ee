import { useEffect, useState } from 'preact/hooks';
import { maxOf } from '../../../objects/lists.ts';
import type { JournalEntry, JournalRow } from '../../../view/rows/rows.ts';
import { usePage } from '../parts/page-context.ts';
import { age, ObjectLink, Text } from '../parts/words.tsx';
import { secondText, withQuery } from '../state/place.ts';
import { AnswerError, journalAnswer } from '../state/session.ts';

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
