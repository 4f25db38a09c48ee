import { describe, expect, test } from 'vitest';
import { keysOf } from '../../../../src/commands/top/terminal.ts';
import {
  firstLook,
  type Look,
  pressed,
  type Seen,
  selectedIndex,
  tabs,
} from '../../../../src/commands/top/state.ts';

const seen: Seen = {
  keys: ['a', 'b', 'c', 'd', 'e'],
  target: { to: 'svc/shop/web:80', protocol: 'TCP' },
  page: 2,
  lastOffset: 7,
};

/** What is looked at after keys. */
function after(sent: string, from: Look = firstLook, shown: Seen = seen): Look {
  return keysOf(sent).keys.reduce((look, key) => pressed(look, key, shown), from);
}

const selected = (look: Look): string | undefined => seen.keys[selectedIndex(look, seen.keys)];
const escape = { name: 'escape' };

describe('lists', () => {
  test('are chosen by number, by Tab and by arrows', () => {
    expect(
      ['1', '2', '7', '\t', '\u001b[Z', '\u001b[C\u001b[C', '\u001b[D'].map((keys) => after(keys).tab),
    ).toEqual(['services', 'pods', 'events', 'pods', 'events', 'nodes', 'events']);
    expect(after('89').tab).toBe('services');
  });

  test('have flows among them where there are some, whose way is asked for at once', () => {
    const withFlows: Look = { ...firstLook, tabs };
    expect(['6', '8', '\u001b[D'].map((keys) => after(keys, withFlows).tab)).toEqual([
      ...['flows', 'events', 'events'],
    ]);
    const way = { from: 'deploy/shop/cart', to: 'svc/shop/web:80', protocol: 'UDP' } as const;
    expect(after('6t', withFlows, { ...seen, target: way })).toMatchObject({
      ...{ over: 'answer', question: { kind: 'way', ...way } },
    });
    expect(after('6o', withFlows)).toMatchObject({ question: { kind: 'page', place: '/flows' } });
  });

  test('have a selected row, which moves by a row, a page, to the ends, and not beyond', () => {
    const ways = [
      '',
      'j',
      'jjk',
      'k',
      '\u001b[6~',
      ' \u001b[5~',
      'G',
      'Gj',
      'Gg',
      '\u001b[F',
      '\u001b[F\u001b[H',
    ];
    expect(ways.map((keys) => selected(after(keys)))).toEqual([
      'a',
      'b',
      'b',
      'a',
      'c',
      'a',
      'e',
      'e',
      'a',
      'e',
      'a',
    ]);
  });

  test('keep the row that is selected wherever it goes, and take the next one in its place', () => {
    const look = after('jj');
    expect(selectedIndex(look, ['x', 'c', 'a'])).toBe(1);
    expect(selectedIndex(look, ['a', 'b', 'd', 'e'])).toBe(2);
    expect(selectedIndex(look, ['a'])).toBe(0);
    expect(selectedIndex(look, [])).toBe(0);
    // Each list has one of its own.
    expect(after('2j1', look).selected).toEqual({
      services: { key: 'c', index: 2 },
      pods: { key: 'b', index: 1 },
    });
  });

  test('without rows have no details', () => {
    const none = { ...seen, keys: [] };
    expect(after('jG\r', firstLook, none)).toEqual({ ...firstLook, hasHints: false });
  });

  test('have problems first or not', () => {
    expect([firstLook, after('p'), after('pp')].map((look) => look.isProblemsFirst)).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('details', () => {
  test('open for the selected row, scroll, and close', () => {
    const open = after('j\r');
    expect(open).toMatchObject({ over: 'details', selected: { services: { key: 'b' } } });
    // The row stays selected.
    expect(after('jjj', open)).toMatchObject({ offset: 3, selected: { services: { key: 'b' } } });
    expect(after('\u001b[6~\u001b[6~\u001b[6~\u001b[6~', open).offset).toBe(7);
    expect(after('Ggk', open).offset).toBe(0);
    expect(pressed(after('jj', open), escape, seen)).toMatchObject({ over: 'nothing', offset: 0 });
    expect(after('2', open)).toMatchObject({ tab: 'pods', over: 'nothing' });
    expect(after('\r', open)).toEqual(open);
  });

  test('so do the keys', () => {
    expect(after('?').over).toBe('keys');
    expect(after('??').over).toBe('nothing');
  });
});

describe('a filter', () => {
  test('takes all keys until Enter', () => {
    const typing = after('/q 1j?');
    expect(typing).toMatchObject({ isTyping: true, filter: 'q 1j?', tab: 'services' });
    expect(after('\u007f\u007f\r', typing)).toMatchObject({ isTyping: false, filter: 'q 1' });
    expect(after('\u0015x', typing).filter).toBe('x');
    expect(after('\u001b[B', typing)).toMatchObject({ isTyping: false, filter: 'q 1j?' });
  });

  test('is taken away by Esc, while it is typed and later', () => {
    const typing = after('/web');
    expect(pressed(typing, escape, seen)).toMatchObject({ isTyping: false, filter: '' });
    expect(pressed(after('\r', typing), escape, seen).filter).toBe('');
    // From details, Esc only leads back.
    const open = after('\r\r', typing);
    expect(pressed(open, escape, seen)).toMatchObject({ over: 'nothing', filter: 'web' });
  });
});

test('a namespace is chosen from a list, or all', () => {
  const shown = { ...seen, keys: ['', 'default', 'shop'] };
  const chosen = after('njj\r', firstLook, shown);
  expect(chosen).toMatchObject({ over: 'nothing', namespace: 'shop', tab: 'services' });
  expect(after('ng\r', chosen, shown).namespace).toBeUndefined();
  expect(pressed(after('nj', firstLook, shown), escape, shown)).toMatchObject({
    over: 'nothing',
    namespace: undefined,
  });
});

test('commands to try leave with the first key', () => {
  expect([firstLook.hasHints, after('j').hasHints]).toEqual([true, false]);
});

test('the way to a Service is asked for from a source that is chosen', () => {
  const choosing = after('jt');
  expect(choosing).toMatchObject({ over: 'sources', target: seen.target });
  // The list begins at its first row, whatever was chosen the last time.
  const asked = after('j\r', choosing);
  expect(asked).toMatchObject({
    over: 'answer',
    question: { kind: 'way', from: 'b', to: 'svc/shop/web:80', protocol: 'TCP' },
  });
  expect(pressed(asked, escape, seen)).toMatchObject({ over: 'nothing', tab: 'services' });
  expect(selected(after('t', asked))).toBe('a');
  // The same once more is a new question.
  expect(after('tj\r', asked).question).not.toBe(asked.question);
  expect(after('t', firstLook, { ...seen, target: undefined }).over).toBe('nothing');
});

test('the link leads to where the page shows what is selected', () => {
  const places = ['jo', 'j\ro', '2o', '3o', '4o', '5o', '6o', '7o'].map((keys) => after(keys).question);
  expect(places.map((question) => (question?.kind === 'page' ? question.place : ''))).toEqual([
    ...['/service/b', '/service/b', '/map?sel=pod/a', '/map?sel=node/a', '/map?ns='],
    ...['/addresses', '/map?show=problems', '/events'],
  ]);
  const none = { ...seen, keys: [] };
  expect(after('o', firstLook, none)).toMatchObject({ over: 'answer', question: { place: '/map' } });
});
