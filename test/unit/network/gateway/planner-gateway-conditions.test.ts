import { describe, expect, test } from 'vitest';
import { addressProblem } from '../../../../src/network/gateway/planner.ts';
import { gateway, listener, plan, ready, words } from './objects.ts';

describe('conditions of a Gateway', () => {
  const waiting = { addresses: [], addressProblem: undefined };
  const noPool = { addresses: [], addressProblem: 'no pool has it' };
  const wants = (...addresses: object[]): { addresses: object[] } => ({ addresses });
  const broken = listener('http 80', { protocol: 'X' });
  const noCertificate = listener('https 443', { tls: { certificateRefs: [{ name: 'none' }] } });

  test.each([
    ['all is well', gateway(['http 80']), ready, 'Accepted Programmed ResolvedRefs'],
    ['no address yet', gateway(['http 80']), waiting, 'Accepted !Programmed=AddressNotAssigned ResolvedRefs'],
    ['no address', gateway(['http 80']), noPool, 'Accepted !Programmed=AddressNotAssigned ResolvedRefs'],
    [
      'some listener is not accepted',
      gateway(['http 80', broken]),
      ready,
      'Accepted=ListenersNotValid Programmed ResolvedRefs',
    ],
    [
      'no listener is accepted',
      gateway([broken]),
      ready,
      '!Accepted=ListenersNotValid !Programmed=Invalid ResolvedRefs',
    ],
    [
      'no listener has a certificate',
      gateway([noCertificate]),
      ready,
      'Accepted !Programmed=Invalid !ResolvedRefs=ListenersNotResolved',
    ],
    [
      'some listener has no certificate',
      gateway([noCertificate, 'http 80']),
      ready,
      'Accepted Programmed !ResolvedRefs=ListenersNotResolved',
    ],
    [
      'parameters',
      gateway(['http 80'], { infrastructure: { parametersRef: { kind: 'X', name: 'x' } } }),
      ready,
      '!Accepted=InvalidParameters !Programmed=Invalid ResolvedRefs',
    ],
    [
      'labels',
      gateway(['http 80'], { infrastructure: { labels: { a: 'b' } } }),
      ready,
      'Accepted Programmed ResolvedRefs',
    ],
    [
      'a host as its address',
      gateway(['http 80'], wants({ type: 'Hostname', value: 'a.test' })),
      ready,
      '!Accepted=UnsupportedAddress !Programmed=Invalid ResolvedRefs',
    ],
    [
      'any address',
      gateway(['http 80'], wants({ type: 'IPAddress' })),
      ready,
      'Accepted Programmed ResolvedRefs',
    ],
    [
      'the address that it has',
      gateway(['http 80'], wants({ value: '192.0.2.1' })),
      ready,
      'Accepted Programmed ResolvedRefs',
    ],
    [
      'another address',
      gateway(['http 80'], wants({ value: '192.0.2.2' })),
      ready,
      'Accepted !Programmed=AddressNotUsable ResolvedRefs',
    ],
    [
      'one of two addresses',
      gateway(['http 80'], wants({ value: '192.0.2.1' }, { value: '192.0.2.2' })),
      ready,
      'Accepted !Programmed=AddressNotUsable ResolvedRefs',
    ],
    [
      'an address that cannot be had',
      gateway(['http 80'], wants({ value: '192.0.2.2' })),
      noPool,
      'Accepted !Programmed=AddressNotUsable ResolvedRefs',
    ],
    [
      'an address that may come',
      gateway(['http 80'], wants({ value: '192.0.2.2' })),
      waiting,
      'Accepted !Programmed=AddressNotAssigned ResolvedRefs',
    ],
    [
      'what is no address',
      gateway(['http 80'], wants({ value: 'x' })),
      waiting,
      'Accepted !Programmed=AddressNotUsable ResolvedRefs',
    ],
  ])('%s', (_, of, state, expected) => {
    expect(words(plan(of, {}, state).conditions)).toBe(expected);
  });

  test('addresses are compared as numbers', () => {
    const of = gateway(['http 80'], wants({ value: '2001:db8:0::1' }));
    const addresses = [{ type: 'IPAddress' as const, value: '2001:db8::1' }];
    expect(addressProblem(of, { addresses, addressProblem: undefined })).toBeUndefined();
  });

  test('listeners wait for the address, and are not served where the Gateway is not accepted', () => {
    const told = (...args: Parameters<typeof plan>): string => words(plan(...args).listeners[0]?.conditions);
    expect(told(['http 80'], {}, waiting)).toBe(
      'Accepted ResolvedRefs !Programmed=Pending !Conflicted=NoConflicts',
    );
    expect(plan(['http 80'], {}, waiting).ports).toHaveLength(1);
    const refused = gateway(['http 80'], { infrastructure: { parametersRef: { name: 'x' } } });
    expect(told(refused)).toBe('Accepted ResolvedRefs !Programmed=Invalid !Conflicted=NoConflicts');
    expect(plan(refused).ports).toEqual([]);
  });

  test.each([
    ['does not exist', { name: 'none' }, 'InvalidClientCertificateRef'],
    ['is broken', { name: 'bad' }, 'InvalidClientCertificateRef'],
    ['is of another kind', { name: 'cert', kind: 'X' }, 'InvalidClientCertificateRef'],
    ['is of another group', { name: 'cert', group: 'x.y' }, 'InvalidClientCertificateRef'],
    ['is in another namespace', { name: 'cert', namespace: 'other' }, 'RefNotPermitted'],
  ])('the certificate for backends %s', (_, clientCertificateRef, reason) => {
    const of = gateway(['http 80'], { tls: { backend: { clientCertificateRef } } });
    expect(words(plan(of, { secrets: { 'shop/bad': 'no PEM' } }).conditions)).toBe(
      `Accepted Programmed !ResolvedRefs=${reason}`,
    );
  });
});
