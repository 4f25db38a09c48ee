import { expect, it } from 'vitest';
import { bindPod, validateBinding } from '../../../../src/registry/pod/binding.ts';
import type { Pod } from '../../../../src/registry/pod/types.ts';

const now = '2020-01-01T00:00:00Z';
const pod: Pod = {
  metadata: { name: 'a' },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'False' }] },
};
const binding = { metadata: { annotations: { k: 'v' } }, target: { kind: 'Node', name: 'n1' } };

it('puts a Pod on a node and leaves the stored one alone', () => {
  const bound = bindPod(pod, binding, now);
  expect(bound).toEqual({
    metadata: { name: 'a', annotations: { k: 'v' } },
    spec: { nodeName: 'n1' },
    status: {
      conditions: [
        { type: 'Ready', status: 'False' },
        { type: 'PodScheduled', status: 'True', lastTransitionTime: now },
      ],
    },
  });
  expect(pod.spec).toEqual({});
});

it.each([
  [{ spec: { nodeName: 'n1' } }, 'pod a is already assigned to node "n1"'],
  [
    { metadata: { name: 'a', deletionTimestamp: now } },
    'pod a is being deleted, cannot be assigned to a host',
  ],
  [{ spec: { schedulingGates: [{ name: 'g' }] } }, 'pod a has non-empty .spec.schedulingGates'],
])('refuses %j', (change, why) => {
  const text = `Operation cannot be fulfilled on pods/binding "a": ${why}`;
  expect(() => bindPod({ ...pod, ...change }, binding, now)).toThrow(text);
});

it('must name a node', () => {
  expect(validateBinding({ metadata: {}, target: { kind: 'Pod' } }).map(({ field }) => field)).toEqual([
    'target.kind',
    'target.name',
  ]);
});
