import { describe, expect, it } from 'vitest';
import { planCidr, serviceCidrFinalizer } from '../../../../src/controllers/service-cidr/plan.ts';
import type { IPAddress, ServiceCIDR } from '../../../../src/objects/types/networking.generated.ts';

const deletedAt = '2026-01-02T03:04:05Z';

function range(name: string, cidrs: string[], metadata: ServiceCIDR['metadata'] = {}): ServiceCIDR {
  return { metadata: { name, finalizers: [serviceCidrFinalizer], ...metadata }, spec: { cidrs }, status: {} };
}

const address = (name: string): IPAddress => ({ metadata: { name }, spec: {} });

function plan(cidr: ServiceCIDR, others: ServiceCIDR[] = [], addresses: string[] = [], deletedForMs = 0) {
  return planCidr({
    cidr,
    cidrs: [cidr, ...others],
    addresses: addresses.map(address),
    deletedForMs,
    time: 'T',
  });
}

describe('planCidr', () => {
  it('adds the finalizer first, then the condition, then rests', () => {
    expect(plan(range('a', ['10.0.0.0/24'], { finalizers: [] }))).toEqual({ do: 'add finalizer' });
    const step = plan(range('a', ['10.0.0.0/24']));
    if (step.do !== 'set condition') throw new Error(step.do);
    expect(step.condition).toEqual({
      type: 'Ready',
      status: 'True',
      lastTransitionTime: 'T',
      reason: '',
      message: 'Kubernetes Service CIDR is ready',
    });
    const settled: ServiceCIDR = { ...range('a', ['10.0.0.0/24']), status: { conditions: [step.condition] } };
    expect(plan(settled)).toEqual({ do: 'nothing' });
  });

  it('words the condition of the range of the API server as that of all others', () => {
    const own: ServiceCIDR = {
      ...range('kubernetes', ['10.0.0.0/24']),
      status: {
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            lastTransitionTime: 'T',
            reason: '',
            message: 'Kubernetes default Service CIDR is ready',
          },
        ],
      },
    };
    const step = plan(own);
    if (step.do !== 'set condition') throw new Error(step.do);
    expect(step.condition.message).toBe('Kubernetes Service CIDR is ready');
  });

  const deleted = (cidrs: string[]) => range('a', cidrs, { deletionTimestamp: deletedAt });
  it('keeps a deleted range for ten seconds, then lets it go', () => {
    expect(plan(deleted(['10.0.0.0/24']))).toEqual({ do: 'wait', milliseconds: 10_000 });
    expect(plan(deleted(['10.0.0.0/24']), [], [], 9_999)).toEqual({ do: 'wait', milliseconds: 1 });
    expect(plan(deleted(['10.0.0.0/24']), [], [], 10_000)).toEqual({ do: 'remove finalizer' });
    expect(
      plan(range('a', ['10.0.0.0/24'], { deletionTimestamp: deletedAt, finalizers: ['other'] })),
    ).toEqual({
      do: 'nothing',
    });
  });

  it.each([
    ['an address of its own', ['10.0.0.0/24'], [], ['10.0.0.9'], true],
    ['an address elsewhere', ['10.0.0.0/24'], [], ['10.0.1.9'], false],
    [
      'an address that another range holds',
      ['10.0.0.0/24'],
      [range('b', ['10.0.0.0/28'])],
      ['10.0.0.9'],
      false,
    ],
    [
      'an address outside of the smaller range',
      ['10.0.0.0/24'],
      [range('b', ['10.0.0.0/28'])],
      ['10.0.0.99'],
      true,
    ],
    ['a larger range around it', ['10.0.0.0/24'], [range('b', ['10.0.0.0/16'])], ['10.0.0.9'], false],
    ['an equal range', ['10.0.0.0/24'], [range('b', ['10.0.0.0/24'])], ['10.0.0.9'], false],
    [
      'an address of its second range',
      ['10.0.0.0/24', 'fd00::/112'],
      [range('b', ['10.0.0.0/16'])],
      ['fd00::5'],
      true,
    ],
    [
      'an address that the smaller range has as its last, and cannot have given',
      ['10.0.0.0/24'],
      [range('b', ['10.0.0.0/28'])],
      ['10.0.0.15'],
      true,
    ],
    [
      'an address that the smaller range has as its first, and cannot have given',
      ['fd00::/112'],
      [range('b', ['fd00::10/124'])],
      ['fd00::10'],
      true,
    ],
    [
      'the last address of a smaller range of IPv6, which may have given it',
      ['fd00::/112'],
      [range('b', ['fd00::10/124'])],
      ['fd00::1f'],
      false,
    ],
    ['its own last address, which it cannot have given', ['10.0.0.0/24'], [], ['10.0.0.255'], false],
    ['its own first address', ['10.0.0.0/24'], [], ['10.0.0.0'], false],
    ['a name that is no address', ['10.0.0.0/24'], [], ['nonsense'], false],
  ])('with %s', (_name, cidrs, others, addresses, isBlocked) => {
    const step = plan(deleted(cidrs), others, addresses);
    expect(step.do).toBe(isBlocked ? 'set condition' : 'wait');
    if (step.do === 'set condition') {
      expect(step.condition).toMatchObject({ status: 'False', reason: 'Terminating' });
    }
  });
});
