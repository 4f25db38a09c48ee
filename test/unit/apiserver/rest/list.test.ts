import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeContinue, encodeContinue } from '../../../../src/apiserver/rest/list.ts';

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
        fc.stringMatching(/^[a-z0-9./-]{1,40}$/).filter((start) => !/(^|\/)\.{0,2}(\/|$)/.test(start)),
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
    [token({ v: 'meta.k8s.io/v1', rv: 3, start: 'a//b' }), 'a//b'],
    [token({ v: 'meta.k8s.io/v1', rv: 3, start: 'a/../b' }), 'a/../b'],
    [token({ v: 'meta.k8s.io/v1', rv: 3, start: 'a/' }), 'a/'],
    [token(null), 'server does not recognize this encoded version '],
    [token({ V: 'v8', rv: 3 }), 'server does not recognize this encoded version v8'],
    [token([]), 'json: cannot unmarshal array into Go value of type storage.continueToken'],
    [token({ v: 1 }), 'json: cannot unmarshal number into Go struct field continueToken.v of type string'],
    [
      token({ rv: 1.5 }),
      'json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64',
    ],
    [token({ rv: '1' }), 'json: cannot unmarshal string into Go struct field continueToken.rv of type int64'],
    [Buffer.from('{"v":').toString('base64url'), 'unexpected end of JSON input'],
    [Buffer.from('{}x').toString('base64url'), "invalid character 'x' after top-level value"],
  ])('refuse %j', (text, why) => {
    expect(messageOf(text)).toBe(`invalid continue token: continue key is not valid: ${why}`);
  });

  it('never lead out of the listed prefix', () => {
    expect(messageOf(encodeContinue({ revision: 5, start: '../secrets/a\0' }))).toContain(
      'invalid continue token',
    );
  });
});
