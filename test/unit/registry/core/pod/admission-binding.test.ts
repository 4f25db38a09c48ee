import type { Pod } from '../../../../../src/objects/types/core.generated.ts';
import { expect, it } from 'vitest';
import {
  bindPod,
  validateBinding,
  copyTopologyLabels,
} from '../../../../../src/registry/core/pod/admission.ts';

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

it('takes the labels of the Binding, and ends its nomination', () => {
  const nominated = {
    ...pod,
    metadata: { name: 'a', labels: { zone: 'mine' } },
    status: {
      nominatedNodeName: 'n1',
      conditions: [
        { type: 'PodScheduled', status: 'False' },
        { type: 'Ready', status: 'False' },
      ],
    },
  };
  const labels = { zone: 'theirs', region: 'r' };
  expect(bindPod(nominated, { ...binding, metadata: { labels } }, now)).toMatchObject({
    metadata: { labels: { zone: 'theirs', region: 'r' } },
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Ready', status: 'False' },
      ],
    },
  });
});

it('says where its node is', () => {
  const node = {
    metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'z', other: 'x' } },
  };
  const metadata = { labels: { app: 'a' } };
  copyTopologyLabels(metadata, node);
  expect(metadata.labels).toEqual({ 'topology.kubernetes.io/zone': 'z', app: 'a' });
  copyTopologyLabels(metadata, undefined);
  expect(Object.keys(metadata.labels)).toHaveLength(2);
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

it.each([
  ['Node', true],
  ['', true],
  ['Pod', false],
])('of the kind %j names a node by the rule for nodes: %s', (kind, isChecked) => {
  const errors = validateBinding({ metadata: {}, target: { kind, name: 'Not_A_Node' } });
  expect(errors.some(({ field, reason }) => field === 'target.name' && reason === 'FieldValueInvalid')).toBe(
    isChecked,
  );
});
