import { expect, test } from 'vitest';
import { type AttachmentObjects, auditAttachments } from '../../../../src/platforms/cni/plan-audit.ts';
import { reportIPPools } from '../../../../src/platforms/cni/plan.ts';
import { attachedPod, definition, ipPool, reservation } from '../../controllers/attachments/samples.ts';

const none: AttachmentObjects = { pools: [], reservations: [], pods: [], definitions: [] };

function found(objects: Partial<AttachmentObjects>): readonly string[] {
  return auditAttachments({ ...none, ...objects }).map(
    ({ kind, key, value, reason }) => `${reason} ${value} of ${kind} ${key}`,
  );
}

const pods = [attachedPod('a', ['10.0.0.1']), attachedPod('b', ['10.0.0.2'])];
const lan = definition('lan', { type: 'whereabouts', range: '10.0.0.0/24' });

test('what Pods have, and pools have given to them, is no finding', () => {
  const pools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 1: ['shop/a'], 2: ['shop/b'] })];
  const reservations = [reservation('10.0.0.1', 'shop/a'), reservation('10.0.0.2', 'shop/b')];
  expect(found({ pools, reservations, pods, definitions: [lan] })).toEqual([]);
});

test('what no Pod has any more has leaked, in pools and in reservations', () => {
  const pools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 1: ['shop/a'], 2: ['shop/b'], 3: ['shop/gone'] })];
  const reservations = [reservation('10.0.0.9', 'shop/a'), reservation('10.0.0.3', 'shop/gone')];
  expect(found({ pools, reservations, pods })).toEqual([
    'AddressLeaked 10.0.0.3 of IPPool kube-system/10.0.0.0-24',
    'AddressLeaked 10.0.0.3 of OverlappingRangeIPReservation kube-system/10.0.0.3',
    'AddressLeaked 10.0.0.9 of OverlappingRangeIPReservation kube-system/10.0.0.9',
  ]);
});

test('what two pools have given is a duplicate, unless a network says that its ranges may overlap', () => {
  const both = [attachedPod('a', ['10.0.0.1']), attachedPod('b', ['10.0.0.1'])];
  const pools = [
    ipPool('10.0.0.0-24', '10.0.0.0/24', { 1: ['shop/a'] }),
    ipPool('10.0.0.0-16', '10.0.0.0/16', { 1: ['shop/b'] }),
    // Another network is another place.
    ipPool('n-10.0.0.0-24', '10.0.0.0/24', { 1: ['shop/b'] }),
  ];
  expect(found({ pools, pods: both })).toEqual([
    'AddressDuplicate 10.0.0.1 of IPPool kube-system/10.0.0.0-16',
  ]);
  const apart = definition('apart', {
    ...{ type: 'whereabouts', range: '10.0.0.0/16', enable_overlapping_ranges: false },
  });
  expect(found({ pools, pods: both, definitions: [apart] })).toEqual([]);
});

test('what a Pod has without its pool can be given to another one', () => {
  const pools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 1: ['shop/a'], 2: ['shop/a', 'net2'] })];
  expect(found({ pools, pods, definitions: [lan, definition('broken', {})] })).toEqual([
    'AddressLeaked 10.0.0.2 of IPPool kube-system/10.0.0.0-24',
    'AddressNotAllocated 10.0.0.2 of Pod shop/b',
  ]);
});

test('the report has who has which address, by value', () => {
  const pools = [
    ipPool('fd00---64', 'fd00::/64', {}),
    ipPool('10.0.0.0-24', '10.0.0.0/24', { 10: ['shop/b', 'net2'], 9: ['shop/a'] }),
  ];
  expect(reportIPPools(pools)).toEqual([
    {
      ...{ name: '10.0.0.0-24', range: '10.0.0.0/24', total: 254, used: 2, free: 252 },
      addresses: [
        { address: '10.0.0.9', pod: 'shop/a', interface: 'net1' },
        { address: '10.0.0.10', pod: 'shop/b', interface: 'net2' },
      ],
    },
    {
      ...{ name: 'fd00---64', range: 'fd00::/64', total: 2 ** 64, used: 0, free: 2 ** 64, addresses: [] },
    },
  ]);
});
