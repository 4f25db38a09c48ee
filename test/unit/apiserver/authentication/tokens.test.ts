import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wantedUser } from '../../../../src/apiserver/authorization/impersonation.ts';
import { serviceAccountTokens } from '../../../../src/apiserver/authentication/service-account-tokens.ts';
import { staticTokens } from '../../../../src/apiserver/authentication/authenticator.ts';

describe('static tokens', () => {
  const user = (name: string) => ({ name, uid: '', groups: [], extra: {} });
  const tokens = staticTokens([
    { token: 'a', user: user('alice') },
    { token: 'b', user: user('bob') },
  ]);

  test('name their owner', () => {
    expect(tokens.authenticateToken('a')?.name).toBe('alice');
    expect(tokens.authenticateToken('b')?.name).toBe('bob');
    expect(staticTokens([]).authenticateToken('')).toBeUndefined();
  });

  test('nothing else does', () => {
    fc.assert(
      fc.property(fc.string(), (guess) => {
        fc.pre(guess !== 'a' && guess !== 'b');
        expect(tokens.authenticateToken(guess)).toBeUndefined();
      }),
    );
  });
});

describe('service account tokens', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  let now = Date.parse('2026-01-01T00:00:00Z');
  const accounts = new Map([['ns/web', 'uid-1']]);
  const podUids = new Map([['ns/p', 'pod-1']]);
  const options = {
    key: privateKey,
    issuer: 'https://kubernetes.default.svc',
    now: () => now,
    accountUid: (namespace: string, name: string) => accounts.get(`${namespace}/${name}`),
    boundUid: (_kind: string, namespace: string, name: string) => podUids.get(`${namespace}/${name}`),
  };
  const tokens = serviceAccountTokens(options);
  const request = { namespace: 'ns', name: 'web', uid: 'uid-1', audiences: [], expirationSeconds: 600 };

  test('name the account and its groups', () => {
    const { token, expirationTimestamp } = tokens.issue(request);
    expect(expirationTimestamp).toBe('2026-01-01T00:10:00Z');
    const user = tokens.authenticateToken(token);
    expect(user).toMatchObject({
      name: 'system:serviceaccount:ns:web',
      uid: 'uid-1',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:ns'],
    });
    expect(user?.extra['authentication.kubernetes.io/credential-id']?.[0]).toMatch(/^JTI=/);
  });

  test('end with their time, their account and the object they are bound to', () => {
    const { token } = tokens.issue(request);
    const bound = tokens.issue({ ...request, boundObject: { kind: 'Pod', name: 'p', uid: 'pod-1' } });
    expect(tokens.authenticateToken(bound.token)?.extra['authentication.kubernetes.io/pod-name']).toEqual([
      'p',
    ]);
    podUids.set('ns/p', 'pod-2');
    expect(tokens.authenticateToken(bound.token)).toBeUndefined();
    now += 599_000;
    expect(tokens.authenticateToken(token)).toBeDefined();
    now += 1_000;
    expect(tokens.authenticateToken(token)).toBeUndefined();
    const fresh = tokens.issue(request);
    accounts.set('ns/web', 'uid-2');
    expect(tokens.authenticateToken(fresh.token)).toBeUndefined();
    accounts.set('ns/web', 'uid-1');
  });

  test('for another audience or from another key are not accepted', () => {
    expect(
      tokens.authenticateToken(tokens.issue({ ...request, audiences: ['vault'] }).token),
    ).toBeUndefined();
    const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
    const forged = serviceAccountTokens({ ...options, key: other }).issue(request).token;
    expect(tokens.authenticateToken(forged)).toBeUndefined();
  });

  test('that were changed anywhere are not accepted', () => {
    const { token } = tokens.issue(request);
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'b', '9', '.', '='), (at, character) => {
        fc.pre(token[at] !== character);
        const changed = token.slice(0, at) + character + token.slice(at + 1);
        // the last character of base64 may carry bits that do not count
        fc.pre(at !== token.length - 1);
        expect(tokens.authenticateToken(changed)).toBeUndefined();
      }),
    );
    for (const end of ['=', '==', ' ', '\n', '/', '+']) {
      expect(tokens.authenticateToken(token + end)).toBeUndefined();
    }
    const [head = '', payload = '', signature = ''] = token.split('.');
    const plain = Buffer.from(signature, 'base64url').toString('base64');
    expect(tokens.authenticateToken(`${head}.${payload}.${plain}`)).toBeUndefined();
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${token.split('.')[1] ?? ''}.`;
    expect(tokens.authenticateToken(none)).toBeUndefined();
  });
});

describe('impersonation', () => {
  test('is absent without headers', () => {
    expect(wantedUser(['Authorization', 'x', 'Impersonated', 'y'])).toBeUndefined();
  });

  test('of a user with groups, a uid and extras', () => {
    const headers = ['Impersonate-User', 'jane', 'impersonate-group', 'a, b', 'IMPERSONATE-GROUP', 'c'];
    expect(wantedUser([...headers, 'Impersonate-Uid', 'u', 'impersonate-extra-X%2fy', 'z'])).toEqual({
      name: 'jane',
      uid: 'u',
      groups: ['a, b', 'c'],
      extra: { 'x/y': ['z'] },
    });
  });

  test('of the first user that is named, in the letters that were sent', () => {
    const sent = Buffer.from('jos\u00e9').toString('latin1');
    expect(wantedUser(['Impersonate-User', sent, 'Impersonate-User', 'root'])?.name).toBe('jos\u00e9');
  });

  test('of extras whose names are members of every object', () => {
    const wanted = wantedUser(['Impersonate-User', 'jane', 'Impersonate-Extra-__proto__', 'x']);
    expect(Object.entries(wanted?.extra ?? {})).toEqual([['__proto__', ['x']]]);
    expect(Object.getPrototypeOf(wanted?.extra)).toBe(Object.prototype);
  });

  test('of a group without a user is refused', () => {
    expect(() => wantedUser(['impersonate-group', 'a'])).toThrow(
      'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)} without impersonating a user name',
    );
    expect(() => wantedUser(['impersonate-extra-a', 'x'])).toThrow(
      'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"x"}}} without impersonating a user name',
    );
  });
});
