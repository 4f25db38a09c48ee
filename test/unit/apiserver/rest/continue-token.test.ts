import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeContinue, encodeContinue } from '../../../../src/apiserver/rest/continue-token.ts';

function messageOf(text: string): string {
  try {
    decodeContinue(text);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return 'accepted';
}

describe('continue tokens', () => {
  it('read back what they were made of', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 52 }),
        fc.stringMatching(/^[a-z0-9./-]{1,40}$/).filter((start) => !start.split('/').includes('..')),
        (revision, name) => {
          const token = { revision, start: `${name}\0` };
          expect(decodeContinue(encodeContinue(token))).toEqual(token);
        },
      ),
    );
  });

  it('go on at the newest state with revision -1', () => {
    expect(decodeContinue(encodeContinue({ revision: -1, start: 'ns/a\0' }))).toEqual({
      revision: -1,
      start: 'ns/a\0',
    });
  });

  const token = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  it.each([
    ['%%', 'illegal base64 data at input byte 0'],
    ['abc', "invalid character 'i' looking for beginning of value"],
    [token({ v: 'v9', rv: 5, start: 'a' }), 'server does not recognize this encoded version v9'],
    [
      token({ v: 'meta.k8s.io/v1', rv: 0, start: 'a' }),
      'incorrect encoded start resourceVersion (version meta.k8s.io/v1)',
    ],
    [token({ v: 'meta.k8s.io/v1', rv: 3, start: '' }), 'encoded start key empty (version meta.k8s.io/v1)'],
  ])('refuse %j', (text, why) => {
    expect(messageOf(text)).toBe(`invalid continue token: continue key is not valid: ${why}`);
  });

  it('never lead out of the listed prefix', () => {
    expect(messageOf(encodeContinue({ revision: 5, start: '../secrets/a\0' }))).toContain(
      'invalid continue token',
    );
  });
});
