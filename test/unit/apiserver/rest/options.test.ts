import { describe, expect, it } from 'vitest';
import { listOptions, parseResourceVersion } from '../../../../src/apiserver/rest/options.ts';

function messageOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return 'accepted';
}

const refusal = 'ListOptions.meta.k8s.io "" is invalid: ';

describe('options of a list', () => {
  it.each([
    [
      'resourceVersionMatch=Exact',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    [
      'resourceVersion=0&resourceVersionMatch=Exact',
      'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ],
    [
      'resourceVersion=1&resourceVersionMatch=B',
      'resourceVersionMatch: Unsupported value: "B": supported values: "Exact", "NotOlderThan", ""',
    ],
    [
      'resourceVersion=1&resourceVersionMatch=Exact&continue=x',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
    ],
    ['sendInitialEvents=false', 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'],
  ])('refuse %s', (query, why) => {
    expect(messageOf(() => listOptions(new URLSearchParams(query), false))).toBe(refusal + why);
  });

  it('take numbers as Go does', () => {
    expect(messageOf(() => listOptions(new URLSearchParams('limit=x'), false))).toBe(
      'strconv.ParseInt: parsing "x": invalid syntax',
    );
    expect(messageOf(() => listOptions(new URLSearchParams('limit=9223372036854775808'), false))).toBe(
      'strconv.ParseInt: parsing "9223372036854775808": value out of range',
    );
    expect(messageOf(() => listOptions(new URLSearchParams('limit=99999999999999999999'), false))).toBe(
      'strconv.ParseInt: parsing "99999999999999999999": value out of range',
    );
    expect(listOptions(new URLSearchParams('limit=-1'), false).limit).toBe(-1);
  });
});

describe('options of a watch', () => {
  it('send what exists first when any state will do', () => {
    for (const query of ['', 'resourceVersion=0']) {
      expect(listOptions(new URLSearchParams(query), true)).toMatchObject({
        sendInitialEvents: true,
        resourceVersionMatch: 'NotOlderThan',
      });
    }
    expect(listOptions(new URLSearchParams('resourceVersion=7'), true).sendInitialEvents).toBeUndefined();
  });

  it.each([
    [
      'sendInitialEvents=true',
      'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ],
    [
      'resourceVersion=5&resourceVersionMatch=NotOlderThan',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ],
    [
      'sendInitialEvents=true&resourceVersionMatch=Exact',
      '[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]',
    ],
    [
      'continue=abc',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
    ],
  ])('refuse %s', (query, why) => {
    expect(messageOf(() => listOptions(new URLSearchParams(query), true))).toBe(refusal + why);
  });
});

describe('resource versions', () => {
  it('read "" as 0 and refuse what is no number', () => {
    expect(parseResourceVersion('')).toBe(0n);
    expect(parseResourceVersion('42')).toBe(42n);
    expect(parseResourceVersion('0018446744073709551615')).toBe(2n ** 64n - 1n);
    for (const text of ['18446744073709551616', '9'.repeat(100_000)]) {
      expect(messageOf(() => parseResourceVersion(text))).toBe(
        `resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": value out of range`,
      );
    }
    expect(messageOf(() => parseResourceVersion('abc'))).toBe(
      'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    );
  });
});
