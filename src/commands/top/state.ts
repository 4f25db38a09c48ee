import type { Protocol } from '../../network/forwarding/forwarding-plan.ts';
import { splitKey } from '../../objects/meta.ts';
import type { Key } from './terminal.ts';

/** What is looked at in the live view, and what keys make of it. Pure. */

/** In the order of their numbers; `flows` only where there are some. */
export const tabs = [
  ...(['services', 'pods', 'nodes', 'policies', 'addresses', 'flows', 'problems', 'events'] as const),
] as const;

export type Tab = (typeof tabs)[number];

/** A list whose rows can be selected. */
export type ListName = Tab | 'namespaces' | 'sources';

/** What a connection goes to. */
export interface Target {
  /** `svc/shop/web:80`, as `servicenet trace` takes it. */
  readonly to: string;
  readonly protocol: Protocol;
  /** That of a flow; undefined: its user chooses one. */
  readonly from?: string;
}

/** What is asked for outside of the rows, and answered later. Each press of a key asks anew. */
export type Question =
  | ({ readonly kind: 'way'; readonly from: string } & Target)
  /** The link to a place of the page: `/service/shop/web`. */
  | { readonly kind: 'page'; readonly place: string };

/** A row that was selected, and where it stood: the next one takes its place when it goes. */
export interface Selection {
  readonly key: string;
  readonly index: number;
}

export interface Look {
  readonly tabs: readonly Tab[];
  readonly tab: Tab;
  /** What is shown in place of the list. */
  readonly over: 'nothing' | 'details' | 'namespaces' | 'sources' | 'keys' | 'answer';
  /** To which a source is chosen. */
  readonly target: Target | undefined;
  /** Whose answer is shown. */
  readonly question: Question | undefined;
  /** Words that rows have to have. */
  readonly filter: string;
  /** Whether keys go into the filter. */
  readonly isTyping: boolean;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  readonly isProblemsFirst: boolean;
  readonly selected: Readonly<Partial<Record<ListName, Selection>>>;
  /** Lines of the details that are above the screen. */
  readonly offset: number;
  /** Whether commands to try are shown: until the first key. */
  readonly hasHints: boolean;
}

export const firstLook: Look = {
  tabs: tabs.filter((tab) => tab !== 'flows'),
  ...{ tab: 'services', over: 'nothing', filter: '', isTyping: false, namespace: undefined },
  ...{ isProblemsFirst: true, selected: {}, offset: 0, hasHints: true },
  ...{ target: undefined, question: undefined },
};

/** What the last screen showed: keys are meant for that. */
export interface Seen {
  /** The keys of the list's rows, in their order. */
  readonly keys: readonly string[];
  /** What connections to the selected row go to; undefined: it is no Service and no Pod. */
  readonly target: Target | undefined;
  /** How many rows, or lines of details, a screen has. */
  readonly page: number;
  /** The largest {@link Look.offset} that shows something. */
  readonly lastOffset: number;
}

export const nothingSeen: Seen = { keys: [], target: undefined, page: 1, lastOffset: 0 };

/** Which list is on the screen, or under the details. */
export function listOf({ tab, over }: Look): ListName {
  return over === 'namespaces' || over === 'sources' ? over : tab;
}

/** The row that is selected, or whose details are shown. */
export function selectedKey(look: Look, keys: readonly string[]): string | undefined {
  return look.over === 'details' ? look.selected[look.tab]?.key : keys[selectedIndex(look, keys)];
}

/** The place of the selected row; of one that is gone, that of the next. */
export function selectedIndex(look: Look, keys: readonly string[]): number {
  const selection = look.selected[listOf(look)];
  if (selection === undefined) return 0;
  const index = keys.indexOf(selection.key);
  return index >= 0 ? index : Math.max(0, Math.min(selection.index, keys.length - 1));
}

/** What is looked at after a key. */
export function pressed(look: Look, key: Key, seen: Seen): Look {
  const next = { ...look, hasHints: false };
  if (look.isTyping) return typed(next, key);
  const step = stepOf(key, seen);
  if (step !== undefined) return stepped(next, step, seen);
  switch ('text' in key ? key.text : key.name) {
    case 'return':
      return entered(next, seen);
    case 'escape':
      return look.over === 'nothing' ? { ...next, filter: '' } : closed(next);
    case 'tab':
    case 'right':
      return beside(next, 1);
    case 'backtab':
    case 'left':
      return beside(next, -1);
    case '/':
      return { ...closed(next), isTyping: true };
    case 'n':
      return { ...next, over: look.over === 'namespaces' ? 'nothing' : 'namespaces', offset: 0 };
    case '?':
      return { ...next, over: look.over === 'keys' ? 'nothing' : 'keys', offset: 0 };
    case 't':
      if (seen.target?.from !== undefined)
        return {
          ...{ ...next, over: 'answer', offset: 0 },
          question: { kind: 'way', ...seen.target, from: seen.target.from },
        };
      return look.over !== 'sources' && seen.target !== undefined
        ? {
            ...next,
            over: 'sources',
            target: seen.target,
            offset: 0,
            selected: without(look.selected, 'sources'),
          }
        : next;
    case 'o':
      return { ...next, over: 'answer', question: { kind: 'page', place: placeOf(look, seen) }, offset: 0 };
    case 'p':
      return { ...next, isProblemsFirst: !look.isProblemsFirst };
    default:
      return numbered(next, key);
  }
}

function closed(look: Look): Look {
  return { ...look, over: 'nothing', offset: 0 };
}

function typed(look: Look, key: Key): Look {
  if ('text' in key) return { ...look, filter: look.filter + key.text };
  switch (key.name) {
    case 'backspace':
      return { ...look, filter: look.filter.replace(/.$/su, '') };
    case 'clear':
      return { ...look, filter: '' };
    case 'escape':
      return { ...look, isTyping: false, filter: '' };
    case 'return':
    case 'up':
    case 'down':
    case 'tab':
      return { ...look, isTyping: false };
    default:
      return look;
  }
}

/** How many rows or lines a key goes down. */
function stepOf(key: Key, { page }: Seen): number | undefined {
  switch ('text' in key ? key.text : key.name) {
    case 'down':
    case 'j':
      return 1;
    case 'up':
    case 'k':
      return -1;
    case 'pagedown':
    case ' ':
      return page;
    case 'pageup':
      return -page;
    case 'home':
    case 'g':
      return -Infinity;
    case 'end':
    case 'G':
      return Infinity;
    default:
      return undefined;
  }
}

function stepped(look: Look, step: number, { keys, lastOffset }: Seen): Look {
  if (look.over === 'details' || look.over === 'keys' || look.over === 'answer') {
    return { ...look, offset: Math.max(0, Math.min(lastOffset, look.offset + step)) };
  }
  const index = Math.max(0, Math.min(keys.length - 1, selectedIndex(look, keys) + step));
  return selecting(look, keys, index);
}

function selecting(look: Look, keys: readonly string[], index: number): Look {
  const key = keys[index];
  if (key === undefined) return look;
  return { ...look, selected: { ...look.selected, [listOf(look)]: { key, index } } };
}

function entered(look: Look, { keys }: Seen): Look {
  const index = selectedIndex(look, keys);
  if (look.over === 'namespaces') return { ...closed(look), namespace: keys[index] || undefined };
  if (look.over === 'sources' && look.target !== undefined) {
    const from = keys[index];
    if (from === undefined) return look;
    return { ...look, over: 'answer', question: { kind: 'way', from, ...look.target }, offset: 0 };
  }
  if (look.over !== 'nothing' || keys[index] === undefined) return look;
  // What is open stays so, wherever its row goes.
  return { ...selecting(look, keys, index), over: 'details', offset: 0 };
}

function beside(look: Look, step: number): Look {
  const { tabs, tab } = look;
  const at = tabs.indexOf(tab) + step;
  return { ...closed(look), tab: tabs.at(at % tabs.length) ?? tab };
}

function numbered(look: Look, key: Key): Look {
  const tab = 'text' in key ? look.tabs[Number(key.text) - 1] : undefined;
  return tab === undefined ? look : { ...closed(look), tab };
}

/** Where the page shows what is selected. */
function placeOf(look: Look, { keys }: Seen): string {
  const key = selectedKey(look, keys);
  switch (look.tab) {
    case 'services':
      return key === undefined ? '/map' : `/service/${key}`;
    case 'pods':
      return key === undefined ? '/map' : `/map?sel=pod/${key}`;
    case 'nodes':
      return key === undefined ? '/map' : `/map?sel=node/${key}`;
    case 'policies':
      return key === undefined ? '/map' : `/map?ns=${splitKey(key).namespace}`;
    case 'addresses':
      return '/addresses';
    case 'flows':
      return '/flows';
    case 'problems':
      return '/map?show=problems';
    case 'events':
      return '/events';
  }
}

function without(selected: Look['selected'], name: ListName): Look['selected'] {
  const { [name]: _, ...rest } = selected;
  return rest;
}
