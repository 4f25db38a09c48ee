import { describe, expect, it } from 'vitest';
import {
  addressText,
  entriesOf,
  holdingOf,
  networkNameOf,
  reservationHolding,
} from '../../../../src/platforms/cni/plan.ts';
import { networkStatusAnnotation } from '../../../../src/network/attachments/network-status.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import { attachedPod, ipPool, reservation } from '../../controllers/attachments/samples.ts';

const disrupted = (reason: string): object => ({
  conditions: [{ type: 'DisruptionTarget', status: 'True', reason }],
});

function withoutStatus(phase: string): Pod {
  const pod = attachedPod('web', [], { phase });
  const { [networkStatusAnnotation]: _, ...annotations } = pod.metadata.annotations ?? {};
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

describe('an address of a pool', () => {
  it.each<[string, Pod | undefined, string]>([
    ['its Pod has it', attachedPod('web', ['10.0.0.1']), 'held'],
    ['there is no such Pod', undefined, 'orphaned'],
    ['the Pod has another address', attachedPod('web', ['10.0.0.2']), 'orphaned'],
    // The default network's addresses are not of pools.
    ['it is that of the default network', attachedPod('web', []), 'orphaned'],
    ['the Pod is pending', attachedPod('web', [], { phase: 'Pending' }), 'pending'],
    ['the Pod is pending without an annotation', withoutStatus('Pending'), 'pending'],
    // Its containers may have begun before its networks are known: not here, but with real kubelets.
    ['the Pod runs, and is not attached yet', withoutStatus('Running'), 'pending'],
    ['the Pod has finished, and was not attached', withoutStatus('Succeeded'), 'orphaned'],
    ['the Pod has finished with it', attachedPod('web', ['10.0.0.1'], { phase: 'Succeeded' }), 'held'],
    [
      'its node is gone: the taint manager has deleted the Pod',
      attachedPod('web', ['10.0.0.1'], disrupted('DeletionByTaintManager')),
      'orphaned',
    ],
    ['the Pod is preempted', attachedPod('web', ['10.0.0.1'], disrupted('PreemptionByScheduler')), 'held'],
  ])('%s', (_, pod, expected) => {
    expect(holdingOf(pod, 'net1', '10.0.0.1')).toBe(expected);
  });

  it('is of one interface', () => {
    const pod = attachedPod('web', ['10.0.0.1']);
    expect(holdingOf(pod, 'net2', '10.0.0.1')).toBe('orphaned');
    // Of an old version.
    expect(holdingOf(pod, '', '10.0.0.1')).toBe('held');
  });

  it('is compared in its canonical form', () => {
    expect(holdingOf(attachedPod('web', ['FD00:0:0::1']), 'net1', 'fd00::1')).toBe('held');
  });

  it('is counted from the base of the pool', () => {
    const pool = ipPool('n-10.0.0.0-24', '10.0.0.0/24', { 1: ['shop/web'], 255: ['shop/b'], x: ['shop/c'] });
    expect(entriesOf(pool).map((entry) => addressText(pool, entry))).toEqual(['10.0.0.1', '10.0.0.255']);
    expect(networkNameOf(pool)).toBe('n');
    expect(networkNameOf(ipPool('10.0.0.0-24', '10.0.0.0/24', {}))).toBe('');
    expect(entriesOf(ipPool('x', 'no CIDR', { 1: ['shop/web'] }))).toEqual([]);
  });
});

describe('a reservation', () => {
  it.each([
    ['10.0.0.1', ['10.0.0.1'], 'held'],
    ['10.0.0.1', ['10.0.0.2'], 'orphaned'],
    ['fd00--1', ['fd00::1'], 'held'],
    ['2001-db9--0', ['2001:db9::'], 'held'],
    // Of a network with a name: whereabouts takes these for orphans.
    ['storage-10.0.0.1', ['10.0.0.1'], 'held'],
    ['storage-fd00--1', ['fd00::1'], 'held'],
    ['storage-110.0.0.1', ['10.0.0.1'], 'orphaned'],
  ])('%s of a Pod with %o is %s', (name, ips, expected) => {
    expect(reservationHolding(attachedPod('web', ips), reservation(name, 'shop/web'))).toBe(expected);
  });

  it('of no Pod is orphaned', () => {
    expect(reservationHolding(undefined, reservation('10.0.0.1', 'shop/web'))).toBe('orphaned');
  });
});
