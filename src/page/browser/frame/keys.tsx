import { useEffect, useRef, useState } from 'preact/hooks';
import type { PageContext } from '../parts/page-context.ts';
import { type Place, placeOf, withQuery } from '../state/place.ts';
import { keysAreOn, switchKeys } from '../state/preferences.ts';
import { Dialog } from './explanation.tsx';

/** Letters behind `g`. */
const viewKeys: Readonly<Record<string, Parameters<typeof placeOf>[0]>> = {
  ...{ m: 'map', r: 'reach', w: 'way', f: 'flows', a: 'addresses', h: 'http', e: 'events' },
};

/** A second key counts this long after `g`. */
const pairMs = 1500;

/** Single keys: never in fields, never with Ctrl, Alt or Meta, and only where they are on. */
export function useKeys(
  page: PageContext,
  open: { problems: () => void; help: () => void; close: () => void },
): void {
  const afterG = useRef(0);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || !keysAreOn()) return;
      const target = event.target instanceof HTMLElement ? event.target : document.body;
      if (target.closest('dialog') !== null) return;
      const isField =
        target.closest('input:not([type=checkbox]), select, textarea, [role=combobox]') !== null;
      if (event.key === 'Escape') {
        if (isField) target.blur();
        else if (page.place.query['sel'] !== undefined) page.go(withQuery(page.place, { sel: undefined }));
        open.close();
        return;
      }
      if (isField) return;
      const isPair = Date.now() - afterG.current < pairMs;
      afterG.current = 0;
      if (isPair && viewKeys[event.key] !== undefined)
        page.go(placeOf(viewKeys[event.key] ?? 'map', page.place));
      else if (!pressed(event.key, page, open, afterG)) return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  });
}

/** @returns whether the key means something. */
function pressed(
  key: string,
  page: PageContext,
  open: { problems: () => void; help: () => void },
  afterG: { current: number },
): boolean {
  switch (key) {
    case 'g':
      afterG.current = Date.now();
      return true;
    case '/':
      document.getElementById('search')?.focus();
      return true;
    case 'p':
      open.problems();
      return true;
    case '?':
      open.help();
      return true;
    case '.':
      if (page.place.query['at'] === undefined) page.refreshNow();
      else page.go(withQuery(page.place, { at: undefined }));
      return true;
    case '[':
    case ']':
      document.querySelector<HTMLElement>(key === '[' ? '.time-bar .before' : '.time-bar .after')?.click();
      return true;
    case 't': {
      const link = document.querySelector<HTMLElement>('.reach .decider a');
      if (link !== null) {
        link.click();
        return true;
      }
      const to = wayFrom(page);
      if (to !== undefined) page.go(to);
      return to !== undefined;
    }
    case 'c':
      document.querySelector<HTMLElement>('aside.details .copy, .export .copy, .command .copy')?.click();
      return true;
    case 'ArrowDown':
    case 'ArrowUp':
      return moveFocus(key === 'ArrowDown' ? 1 : -1);
    default:
      return false;
  }
}

/** The way from what is selected or focused: a Pod is a source, a Service a destination. */
function wayFrom({ place, rows }: PageContext): Place | undefined {
  if (place.service !== undefined) {
    return placeOf('way', place, { to: `svc/${place.service.namespace}/${place.service.name}` });
  }
  const [kind, ...key] = (place.query['sel'] ?? '').split('/');
  const name = key.join('/');
  if (kind === 'pod')
    return placeOf('way', place, { from: rows.get('pod', name)?.workload ?? `pod/${name}` });
  if (kind === 'node') return placeOf('way', place, { from: `node/${name}` });
  if (kind === 'service') return placeOf('way', place, { to: `svc/${name}` });
  return undefined;
}

/** To the next link or button of the list that has the focus; to the first one of the view, if none has. */
function moveFocus(step: 1 | -1): boolean {
  const items = [
    ...document.querySelectorAll<HTMLElement>(
      'main :is(.title, .pod-name, .fold, td a, .problems a):is(a, button)',
    ),
  ];
  const now = items.indexOf(
    document.activeElement instanceof HTMLElement ? document.activeElement : document.body,
  );
  const next = items[now === -1 ? 0 : now + step];
  next?.focus();
  return next !== undefined;
}

const help = [
  ['g then m r w f a h e', 'Map, Reach, Way, Flows, Addresses, HTTP, Events'],
  ['/', 'search'],
  ['↑ ↓ Enter', 'through the list, and open'],
  ['t', 'way from or to what is selected'],
  ['c', 'copy the command'],
  ['p', 'problems'],
  ['[ ]', 'before the last change, after the next one'],
  ['.', 'show what is now, in the order of now'],
  ['Esc', 'close'],
  ['?', 'this'],
] as const;

/** All keys, and the switch that turns them off. */
export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const [isOn, setOn] = useState(keysAreOn);
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {help.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={isOn}
          onChange={({ currentTarget }) => {
            switchKeys(currentTarget.checked);
            setOn(currentTarget.checked);
          }}
        />{' '}
        single keys do something
      </label>
      <p class="muted">Everything also works with Tab, Enter and the pointer.</p>
    </Dialog>
  );
}
