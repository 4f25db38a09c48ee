import { expect, test } from 'vitest';
import { keysOf } from '../../../../src/commands/top/terminal.ts';

test.each([
  ['jq', [{ text: 'j' }, { text: 'q' }]],
  ['\u001b[A\u001b[B\u001bOC\u001bOD', ['up', 'down', 'right', 'left']],
  ['\u001b[5~\u001b[6~\u001b[H\u001b[4~\u001b[1;5B', ['pageup', 'pagedown', 'home', 'end', 'down']],
  [
    '\t\u001b[Z\r\u007f\u0003\u001a\u0015',
    ['tab', 'backtab', 'return', 'backspace', 'interrupt', 'suspend', 'clear'],
  ],
  ['ü😀', [{ text: 'ü' }, { text: '😀' }]],
  // What is bound to nothing: F5, Ctrl-A.
  ['\u001b[15~\u0001', []],
  // Escape, and a key soon after it.
  ['\u001bj', ['escape', { text: 'j' }]],
  ['\u001b\u001b[A', ['escape', 'up']],
])('%j', (sent, expected) => {
  const keys = expected.map((key) => (typeof key === 'string' ? { name: key } : key));
  expect(keysOf(sent)).toEqual({ keys, rest: '' });
});

test('the beginning of a sequence waits for the rest', () => {
  expect(keysOf('j\u001b')).toEqual({ keys: [{ text: 'j' }], rest: '\u001b' });
  expect(keysOf('\u001b[1;')).toEqual({ keys: [], rest: '\u001b[1;' });
  expect(keysOf('\u001bO')).toEqual({ keys: [], rest: '\u001bO' });
});
