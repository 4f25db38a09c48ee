import { describe, expect, test } from 'vitest';
import { adoptionOrder } from '../../../../src/controllers/load-balancer/sharing.ts';
import { type ServedService, sharingKeyText } from '../../../../src/controllers/load-balancer/status.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import { inStatus, request } from './samples.ts';

/** A Service with 192.0.2.1, younger than all before it. `was`: the key that its condition names. */
function service(
  name: string,
  { was, ...changes }: Partial<AddressRequest> & { was?: string } = {},
): ServedService {
  const key = was === undefined ? undefined : sharingKeyText(was);
  return { request: request(name, changes), inStatus: inStatus('192.0.2.1').map((one) => ({ ...one, key })) };
}

function order(...services: ServedService[]): string[] {
  return adoptionOrder(services, () => true).map(({ request }) => request.service);
}

const key = (sharingKey: string, was?: string): Partial<AddressRequest> & { was?: string } => ({
  sharingKey,
  ...(was === undefined ? {} : { was }),
});

describe('of the Services that have one address', () => {
  test('the oldest comes first', () => {
    const services = [service('n/1'), service('n/2'), service('n/3')];
    expect(order(...services.toReversed())).toEqual(['n/1', 'n/2', 'n/3']);
  });

  test('one with another key than in its condition comes last', () => {
    expect(order(service('n/old', key('', 'l')), service('n/young', key('l', 'l')))).toEqual([
      'n/young',
      'n/old',
    ]);
    expect(order(service('n/old', key('k', 'l')), service('n/young', key('l', 'l')))).toEqual([
      'n/young',
      'n/old',
    ]);
    expect(order(service('n/old', key('k', '')), service('n/young', key('', '')))).toEqual([
      'n/young',
      'n/old',
    ]);
  });

  test('without conditions, one that is not in the largest group comes last, and one without a key', () => {
    expect(order(service('n/old', key('k')), service('n/b', key('l')), service('n/c', key('l')))).toEqual([
      'n/b',
      'n/c',
      'n/old',
    ]);
    expect(order(service('n/old'), service('n/young', key('l')))).toEqual(['n/young', 'n/old']);
    expect(order(service('n/old', key('k')), service('n/young', key('l')))).toEqual(['n/old', 'n/young']);
  });

  test('one that requests another address comes last', () => {
    const elsewhere = { addresses: new Map([['IPv4' as const, '192.0.2.9']]) };
    expect(order(service('n/old', elsewhere), service('n/young'))).toEqual(['n/young', 'n/old']);
  });

  test('one that withdrew its consent comes last', () => {
    const consenting = { ...key('k', 'k'), sharingNamespaces: new Set(['a', 'b']) };
    expect(order(service('a/old', key('k', 'k')), service('b/young', consenting))).toEqual([
      'b/young',
      'a/old',
    ]);
    expect(order(service('a/old', consenting), service('b/young', consenting))).toEqual(['a/old', 'b/young']);
  });

  test('one that may not keep the address is not compared', () => {
    const [first, second] = [service('n/old', key('k')), service('n/young')];
    const only = adoptionOrder([first, second], (one) => one !== first);
    expect(only.map(({ request }) => request.service)).toEqual(['n/old', 'n/young']);
  });
});
