import { expect, test } from 'vitest';
import { refuseAdmission } from '../../../../src/controllers/kubelet/plan-admission.ts';
import type { Node, Pod } from '../../../../src/objects/types/core.generated.ts';

const node: Node = {
  metadata: { name: 'node-1', labels: { disk: 'ssd' } },
  spec: {},
  status: { allocatable: { cpu: '2', memory: '1Gi', pods: '3' } },
};
const pod = (requests: Record<string, string>, spec: Partial<Pod['spec']> = {}, hostPort = 0): Pod => ({
  metadata: { name: 'p' },
  spec: {
    containers: [
      {
        name: 'main',
        resources: { requests },
        ...(hostPort === 0 ? {} : { ports: [{ containerPort: 80, hostPort }] }),
      },
    ],
    ...spec,
  },
  status: {},
});

// pkg/kubelet/lifecycle/predicate.go
test.each([
  ['what fits', pod({ cpu: '500m', memory: '1Gi' }, {}, 8081), [pod({ cpu: '1500m' }, {}, 8080)], undefined],
  [
    'more processors',
    pod({ cpu: '600m' }),
    [pod({ cpu: '1500m' })],
    ["OutOfcpu: Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"],
  ],
  [
    'more memory',
    pod({ memory: '2Gi' }),
    [],
    [
      "OutOfmemory: Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824",
    ],
  ],
  [
    'one Pod more',
    pod({}),
    [pod({}), pod({}), pod({})],
    ["OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"],
  ],
  ['a resource that the node does not know', pod({ 'example.com/gpu': '1' }), [], undefined],
  [
    'a port that is taken',
    pod({}, {}, 8080),
    [pod({}, {}, 8080)],
    ["NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"],
  ],
  [
    'other labels',
    pod({}, { nodeSelector: { disk: 'tape' } }),
    [],
    ["NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"],
  ],
  [
    'a sysctl that is not safe, before all else',
    pod({}, { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } }),
    [pod({}), pod({}), pod({})],
    ['SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted'],
  ],
])('a kubelet is asked for %s', (_, wanted, others, said) => {
  const refusal = refuseAdmission(wanted, node, others);
  expect(refusal && [`${refusal.reason}: ${refusal.message}`]).toEqual(said);
});
