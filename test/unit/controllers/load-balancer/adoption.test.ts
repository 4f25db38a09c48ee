import { describe, expect, test } from 'vitest';
import { adoptionOrder, type Claim } from '../../../../src/controllers/load-balancer/adoption.ts';
import { keyText } from '../../../../src/controllers/load-balancer/assigned-text.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import { had, request } from './given.ts';

/** A younger one than before it, with 192.0.2.1. `was`: the key that its condition names. */
function claim(service: string, { was, ...wish }: Partial<AddressRequest> & { was?: string } = {}): Claim {
  const key = was === undefined ? undefined : keyText(was);
  return { request: request(service, wish), present: had('192.0.2.1').map((one) => ({ ...one, key })) };
}

function order(...claims: Claim[]): string[] {
  return adoptionOrder(claims, () => true).map(({ request }) => request.service);
}

const key = (sharingKey: string, was?: string): Partial<AddressRequest> & { was?: string } => ({
  sharingKey,
  ...(was === undefined ? {} : { was }),
});

describe('of those who claim one address', () => {
  test('the oldest comes first', () => {
    const claims = [claim('n/1'), claim('n/2'), claim('n/3')];
    expect(order(...claims.toReversed())).toEqual(['n/1', 'n/2', 'n/3']);
  });

  // Histories, seed 152529519: the younger lost its address because the older had dropped the key.
  test('one whose key is not the one in its condition comes last', () => {
    expect(order(claim('n/old', key('', 'l')), claim('n/young', key('l', 'l')))).toEqual([
      'n/young',
      'n/old',
    ]);
    expect(order(claim('n/old', key('k', 'l')), claim('n/young', key('l', 'l')))).toEqual([
      'n/young',
      'n/old',
    ]);
    expect(order(claim('n/old', key('k', '')), claim('n/young', key('', '')))).toEqual(['n/young', 'n/old']);
  });

  test('without conditions that tell, one that left the circle of most comes last, and one without a key', () => {
    expect(order(claim('n/old', key('k')), claim('n/b', key('l')), claim('n/c', key('l')))).toEqual([
      'n/b',
      'n/c',
      'n/old',
    ]);
    expect(order(claim('n/old'), claim('n/young', key('l')))).toEqual(['n/young', 'n/old']);
    expect(order(claim('n/old', key('k')), claim('n/young', key('l')))).toEqual(['n/old', 'n/young']);
  });

  test('one that asks for another address comes last', () => {
    const elsewhere = { addresses: new Map([['IPv4' as const, '192.0.2.9']]) };
    expect(order(claim('n/old', elsewhere), claim('n/young'))).toEqual(['n/young', 'n/old']);
  });

  test('one that took back its consent comes last', () => {
    const consenting = { ...key('k', 'k'), sharingNamespaces: new Set(['a', 'b']) };
    expect(order(claim('a/old', key('k', 'k')), claim('b/young', consenting))).toEqual(['b/young', 'a/old']);
    expect(order(claim('a/old', consenting), claim('b/young', consenting))).toEqual(['a/old', 'b/young']);
  });

  test('one that may not keep it anyway stands in nobody’s way', () => {
    const [first, second] = [claim('n/old', key('k')), claim('n/young')];
    const only = adoptionOrder([first, second], (one) => one !== first);
    expect(only.map(({ request }) => request.service)).toEqual(['n/old', 'n/young']);
  });
});
