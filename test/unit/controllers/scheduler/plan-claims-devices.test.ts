import { describe, expect, test } from 'vitest';
import { deviceObstacle, unusableDevices } from '../../../../src/controllers/scheduler/plan-claims.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import type { ResourceClaim } from '../../../../src/objects/types/resource.generated.ts';
import { node, pod } from '../workloads/samples.ts';

function claim(
  status: ResourceClaim['status'] = {},
  metadata: ResourceClaim['metadata'] = {},
): ResourceClaim {
  return {
    metadata: { namespace: 'n', name: 'gpu', ...metadata },
    spec: {
      devices: {
        requests: [
          { name: 'a', exactly: { deviceClassName: 'one' } },
          { name: 'b', firstAvailable: [{ name: 'c', deviceClassName: 'two' }] },
        ],
      },
    },
    status,
  };
}

const plain = pod('web');
const of = (podClaim: object): Pod => ({
  ...plain,
  metadata: { ...plain.metadata, namespace: 'n', uid: 'u' },
  spec: { ...plain.spec, resourceClaims: [{ name: 'x', ...podClaim }] },
});
const named = of({ resourceClaimName: 'gpu' });
const templated = of({ resourceClaimTemplateName: 't' });
const input = (found: ResourceClaim | undefined, ...classes: string[]) => ({
  claimNamed: (name: string) => (name === 'gpu' ? found : undefined),
  hasClass: (name: string) => classes.includes(name),
});

describe('a Pod with resource claims', () => {
  test('waits for claims that can be used', () => {
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    expect(unusableDevices(named, input(undefined))).toBe('could not find ResourceClaim "n/gpu"');
    expect(unusableDevices(named, input(claim({}, { deletionTimestamp })))).toBe(
      'resourceclaim "gpu" is being deleted',
    );
    expect(unusableDevices(named, input(claim()))).toBe('request a: device class one does not exist');
    expect(unusableDevices(named, input(claim(), 'one'))).toBe(
      'request b/c: device class two does not exist',
    );
    expect(unusableDevices(named, input(claim(), 'one', 'two'))).toBeUndefined();
  });

  test('waits for the claim of a template, which is its own', () => {
    expect(unusableDevices(templated, input(claim()))).toBe('pod "n/web": ResourceClaim not created yet');
    const status = { ...templated.status, resourceClaimStatuses: [{ name: 'x', resourceClaimName: 'gpu' }] };
    const made = { ...templated, status };
    expect(unusableDevices(made, input(claim(), 'one', 'two'))).toBe(
      'ResourceClaim n/gpu was not created for Pod n/web (Pod is not owner)',
    );
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'u', controller: true }];
    expect(unusableDevices(made, input(claim({}, { ownerReferences }), 'one', 'two'))).toBeUndefined();
    const notNeeded = {
      ...templated,
      status: { ...templated.status, resourceClaimStatuses: [{ name: 'x' }] },
    };
    expect(unusableDevices(notNeeded, input(undefined))).toBeUndefined();
    expect(deviceObstacle(notNeeded, node('a'), input(undefined))).toBeUndefined();
  });

  test('gets a node when somebody has allocated devices, and one that has them', () => {
    expect(deviceObstacle(named, node('a'), input(claim()))).toEqual({
      ...{ reasons: ['cannot allocate all claims'], isLasting: true },
    });
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['a'] }];
    const allocation = { nodeSelector: { nodeSelectorTerms: [{ matchFields }] } };
    expect(deviceObstacle(named, node('a'), input(claim({ allocation })))).toBeUndefined();
    expect(deviceObstacle(named, node('b'), input(claim({ allocation })))).toEqual({
      ...{ reasons: ['resourceclaim not available on the node'], isLasting: true },
    });
    expect(deviceObstacle(named, node('b'), input(claim({ allocation: {} })))).toBeUndefined();
  });
});
