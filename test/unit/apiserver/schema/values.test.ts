import { describe, expect, it } from 'vitest';

import { canonicalBase64 } from '../../../../src/apiserver/schema/decode-leaf.ts';
import { canonicalMicroTime, canonicalTime } from '../../../../src/apiserver/schema/decode-leaf.ts';

const layout = '"2006-01-02T15:04:05Z07:00"';

describe('times', () => {
  it.each([
    ['2024-01-02T03:04:05Z', '2024-01-02T03:04:05Z'],
    ['2024-01-02T03:04:05.999Z', '2024-01-02T03:04:05Z'],
    ['2024-01-02T03:04:05-23:59', '2024-01-03T03:03:05Z'],
    ['0001-01-01T00:00:00Z', undefined],
    ['0099-12-31T23:59:59Z', '0099-12-31T23:59:59Z'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalTime(text)).toBe(canonical);
  });
  it.each([
    ['yesterday', `parsing time "yesterday" as ${layout}: cannot parse "yesterday" as "2006"`],
    [
      '2024-1-02T03:04:05Z',
      `parsing time "2024-1-02T03:04:05Z" as ${layout}: cannot parse "1-02T03:04:05Z" as "01"`,
    ],
    [
      '2024-01-02 03:04:05Z',
      `parsing time "2024-01-02 03:04:05Z" as ${layout}: cannot parse " 03:04:05Z" as "T"`,
    ],
    ['2024-01-02T03:04:05', `parsing time "2024-01-02T03:04:05" as ${layout}: cannot parse "" as "Z07:00"`],
    ['2024-13-02T03:04:05Z', 'parsing time "2024-13-02T03:04:05Z": month out of range'],
    ['2023-02-29T03:04:05Z', 'parsing time "2023-02-29T03:04:05Z": day out of range'],
    ['2024-01-02T24:04:05Z', 'parsing time "2024-01-02T24:04:05Z": hour out of range'],
    ['2024-01-02T03:04:05Zx', 'parsing time "2024-01-02T03:04:05Zx": extra text: "x"'],
  ])('%s fails as in Go', (text, message) => {
    expect(() => canonicalTime(text)).toThrow(expect.objectContaining({ message }));
  });
  it('with microseconds have six digits', () => {
    expect(canonicalMicroTime('2024-01-02T03:04:05.123456+01:00')).toBe('2024-01-02T02:04:05.123456Z');
    expect(() => canonicalMicroTime('2024-01-02T03:04:05Z')).toThrow('cannot parse "Z" as ".000000"');
  });
});

describe('base64', () => {
  it.each([
    ['', ''],
    ['aGk=', 'aGk='],
    ['aGl=', 'aGk='],
    ['aG\r\nk=\n', 'aGk='],
  ])('%j is %j', (text, canonical) => {
    expect(canonicalBase64(text)).toBe(canonical);
  });
  it.each([
    ['a', 0],
    ['aGk', 0],
    ['aGkx!', 4],
    ['=', 0],
    ['aG=k', 3],
    ['aGk=a', 4],
    ['aG=', 3],
  ])('%j is illegal at byte %d', (text, offset) => {
    expect(() => canonicalBase64(text)).toThrow(`illegal base64 data at input byte ${offset}`);
  });
});
