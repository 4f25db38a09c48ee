import { describe, expect, it } from 'vitest';
import { fetchOf } from '../../../../src/emulation/containers/built-in-fetch.ts';

describe('the options of wget and curl', () => {
  it.each([
    ['wget', '-qO- web', { method: 'GET', isQuiet: true, timeoutMs: 60_000 }],
    ['wget', '-q -O - --timeout=5 http://web:8080/a', { timeoutMs: 5000 }],
    ['wget', '--spider -T2 web', { method: 'HEAD', timeoutMs: 2000, prints: { head: false, body: false } }],
    ['curl', '-sSf -m 0.5 web', { isQuiet: true, fails: true, timeoutMs: 500 }],
    ['curl', '-I web', { method: 'HEAD', prints: { head: true, body: true } }],
    [
      'curl',
      '-i -H Host:shop -H X-A:b web',
      {
        headers: [
          ['Host', 'shop'],
          ['X-A', 'b'],
        ],
      },
    ],
    [
      'curl',
      '-so /dev/null -w %{http_code} web',
      { prints: { head: false, body: false }, writeOut: '%{http_code}' },
    ],
    ['curl', '-m nonsense http://[fd00::1]:80/', { timeoutMs: 60_000 }],
  ] as const)('%s %s', (program, line, wanted) => {
    expect(fetchOf(program, line.split(' '))).toMatchObject(wanted);
  });

  it.each([
    ['wget', 'web'],
    ['wget', '-q web -O'],
    ['curl', '-o file web'],
    ['curl', 'https://web'],
    ['curl', 'file:///etc/passwd'],
    ['curl', '--data x web'],
    ['curl', '-sz web'],
    ['curl', 'a b'],
    ['curl', 'http://'],
    ['curl', ''],
  ] as const)('%s %s is not known', (program, line) => {
    expect(fetchOf(program, line === '' ? [] : line.split(' '))).toBeUndefined();
  });
});
