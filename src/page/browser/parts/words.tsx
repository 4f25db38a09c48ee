import type { ObjectName } from '../../../objects/meta.ts';
import type { ComponentChildren } from 'preact';
import type { PodState } from '../../../view/rows/rows.ts';
import type { Trouble, Why } from '../../../view/rows/trouble.ts';
import { formatPlace, placeOf, servicePlace, type Place, withQuery } from '../state/place.ts';
import { usePage } from './page-context.ts';

/** Words and signs that mean the same on every view. */

/** A tone: what a sign and its colour say. */
export type Tone = 'good' | 'bad' | 'warn' | 'quiet';

/** A sign before a word: state is never told by a colour alone. */
export function Sign({ tone, sign }: { readonly tone: Tone; readonly sign: string }) {
  return (
    <span class={`sign ${tone}`} aria-hidden="true">
      {sign}
    </span>
  );
}

export const podSigns: Readonly<Record<PodState, { readonly sign: string; readonly tone: Tone }>> = {
  ready: { sign: '●', tone: 'good' },
  'not ready': { sign: '○', tone: 'bad' },
  starting: { sign: '◐', tone: 'warn' },
  terminating: { sign: '◌', tone: 'quiet' },
  completed: { sign: '■', tone: 'quiet' },
  failed: { sign: '✕', tone: 'bad' },
};

/** A text of an object: its own direction changes nothing around it. */
export function Text({ children }: { readonly children: string | number }) {
  return <bdi>{children}</bdi>;
}

/** An address, a name as programs have it, a command. */
export function Code({ children }: { readonly children: ComponentChildren }) {
  return <bdi class="code">{children}</bdi>;
}

/** A link to a place of this page. */
export function PlaceLink(props: {
  readonly to: Place;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly title?: string;
}) {
  const { go } = usePage();
  return (
    <a
      href={formatPlace(props.to)}
      class={props.class}
      title={props.title}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
        event.preventDefault();
        go(props.to);
      }}
    >
      {props.children}
    </a>
  );
}

/** The link to a Service's view. @param of `shop/web`. */
export function ServiceLink({ of }: { readonly of: string }) {
  const { place } = usePage();
  return (
    <PlaceLink to={servicePlace(of, place)} class="name">
      <Text>{of}</Text>
    </PlaceLink>
  );
}

/** An object; a link where the page has a view of it. */
export function ObjectLink({ of }: { readonly of: ObjectName }) {
  const { place } = usePage();
  const key = of.namespace === '' ? of.name : `${of.namespace}/${of.name}`;
  if (of.kind === 'Service') {
    return (
      <span class="object">
        Service <ServiceLink of={key} />
      </span>
    );
  }
  const to = objectPlace(of, place);
  return (
    <span class="object">
      {of.kind}{' '}
      {to === undefined ? (
        <Text>{key}</Text>
      ) : (
        <PlaceLink to={to} class="name">
          <Text>{key}</Text>
        </PlaceLink>
      )}
    </span>
  );
}

function objectPlace({ kind, namespace, name }: ObjectName, from: Place): Place | undefined {
  switch (kind) {
    case 'Service':
      return servicePlace(`${namespace}/${name}`, from);
    case 'Pod':
      return placeOf('map', from, { ns: namespace, sel: `pod/${namespace}/${name}` });
    case 'Node':
      return withQuery(placeOf('map', from, { sel: `node/${name}` }), { ns: undefined });
    case 'AddressPool':
      return placeOf('addresses', from, { pool: name });
    case 'Ingress':
    case 'Route':
      return placeOf('http', from, { q: name });
    default:
      return undefined;
  }
}

/** A reason word; a click shows its row of docs/troubleshooting.md. */
export function Reason({ word, tone = 'bad' }: { readonly word: string; readonly tone?: Tone }) {
  const { explain } = usePage();
  return (
    <button type="button" class={`reason ${tone}`} onClick={() => explain(word)} aria-haspopup="dialog">
      {word}
    </button>
  );
}

/** A reason word and its sentence. */
export function TroubleText({ trouble, tone }: { readonly trouble: Trouble; readonly tone?: Tone }) {
  return (
    <span class="trouble">
      <Reason word={trouble.reason} {...(tone === undefined ? {} : { tone })} />{' '}
      <Text>{trouble.message}</Text>
    </span>
  );
}

/** A chain of checks: those that are met, and the one that is not. */
export function WhyChain({ why, label }: { readonly why: Why; readonly label: string }) {
  return (
    <div class="why">
      <h3>
        {label} <Reason word={why.reason} />
      </h3>
      <ol>
        {why.checks.map(({ isMet, message }) => (
          <li key={message} class={isMet ? 'met' : 'unmet'}>
            <Sign tone={isMet ? 'good' : 'bad'} sign={isMet ? '✓' : '✗'} />
            <span class="hidden">{isMet ? 'met: ' : 'not met: '}</span>
            <Text>{message}</Text>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** How long ago, as kubectl says it: `5s`, `3m`, `2h`, `4d`. "" for what is no time. */
export function age(time: string | undefined, nowMs: number): string {
  const ms = Date.parse(time ?? '');
  if (Number.isNaN(ms)) return '';
  const seconds = Math.max(0, Math.floor((nowMs - ms) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** A moment with its age; the whole time stands in its title. */
export function Age({ time }: { readonly time: string | undefined }) {
  const { nowMs } = usePage();
  if (time === undefined || time === '') return null;
  return (
    <time dateTime={time} title={time}>
      {age(time, nowMs)}
    </time>
  );
}

/** `12,345`: without the library of locales, which takes a browser 50 ms when it is first asked. */
export function digits(count: number): string {
  if (!Number.isSafeInteger(count)) return count.toLocaleString('en-US');
  const text = String(count);
  const first = text.length % 3;
  const groups = Array.from({ length: Math.floor(text.length / 3) }, (_, index) =>
    text.slice(first + 3 * index, first + 3 * index + 3),
  );
  return [...(first === 0 ? [] : [text.slice(0, first)]), ...groups].join(',');
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${digits(count)} ${count === 1 ? one : many}`;
}
