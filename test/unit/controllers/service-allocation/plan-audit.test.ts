import { describe, expect, it } from 'vitest';
import {
  AllocationState,
  newIPAddress,
} from '../../../../src/controllers/service-allocation/allocation-state.ts';
import { planAudit } from '../../../../src/controllers/service-allocation/plan-audit.ts';
import { viewOf } from '../../../../src/controllers/service-allocation/plan-view.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type { IPAddress } from '../../../../src/objects/types/networking.generated.ts';
import { service } from './samples.ts';

function findings(services: readonly Service[], addresses: readonly IPAddress[] | undefined): string[] {
  const allocations = new AllocationState({ first: 30_000, last: 32_767 });
  allocations.setCidrs([{ text: '10.0.0.0/24', ready: true }]);
  for (const each of services) allocations.set(viewOf(each), '1');
  const byName = new Map(addresses?.map((each) => [each.metadata.name ?? '', each]));
  const found = planAudit({
    allocations,
    services,
    addresses: addresses === undefined ? undefined : byName,
    serviceOfKey: (key) => services.find((each) => keyOf(each) === key),
  });
  return [...found].flatMap((finding) =>
    finding === undefined ? [] : [`${finding.kind} ${finding.key} ${finding.reason} ${finding.value}`],
  );
}

const a = service('a', { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'] });

describe('audit', () => {
  it('has no findings for consistent objects', () => {
    expect(findings([a], [newIPAddress('10.0.0.5', 'default/a')])).toEqual([]);
    expect(findings([a], undefined)).toEqual([]);
  });

  it('finds values of two Services at the younger one, whatever the parent of the IPAddress', () => {
    const young = service('b', { clusterIP: '10.0.0.5' }, { creationTimestamp: '2026-02-01T00:00:00Z' });
    const expected = ['Service default/b ClusterIPAlreadyAllocated 10.0.0.5'];
    expect(findings([a, young], [newIPAddress('10.0.0.5', 'default/a')])).toEqual(expected);
    const nodePort = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_001 }] };
    expect(
      findings(
        [service('c', nodePort), service('d', nodePort, { creationTimestamp: '2026-02-01T00:00:00Z' })],
        undefined,
      ),
    ).toEqual(['Service default/d PortAlreadyAllocated 30001']);
  });

  it('finds addresses without an IPAddress, or with one of another Service', () => {
    expect(findings([a], [])).toEqual(['Service default/a ClusterIPNotAllocated 10.0.0.5']);
    const gone = newIPAddress('10.0.0.5', 'default/gone');
    expect(findings([a], [gone])).toEqual([
      'Service default/a ClusterIPNotAllocated 10.0.0.5',
      'IPAddress 10.0.0.5 IPAddressNotAllocated 10.0.0.5',
    ]);
  });

  it('finds managed IPAddresses without a Service', () => {
    const leaked = newIPAddress('10.0.0.9', 'default/a');
    const mine = newIPAddress('10.0.0.5', 'default/a');
    expect(findings([a], [mine, leaked])).toEqual(['IPAddress 10.0.0.9 IPAddressWrongReference 10.0.0.9']);
    const gateway = {
      metadata: { name: '10.0.0.10' },
      spec: { parentRef: { resource: 'gateways', name: 'a' } },
    };
    expect(findings([a], [mine, gateway])).toEqual([]);
    const modified = { ...newIPAddress('10.0.0.11', 'default/a'), spec: {} };
    expect(findings([a], [mine, modified])).toEqual(['IPAddress 10.0.0.11 IPAddressNotAllocated 10.0.0.11']);
  });

  it('finds invalid values and values out of range', () => {
    const odd = service('b', {
      clusterIP: '192.0.2.1',
      type: 'NodePort',
      ports: [{ port: 80, nodePort: 80 }],
    });
    expect(findings([odd, service('c', { clusterIP: 'x' })], undefined)).toEqual([
      'Service default/b ClusterIPOutOfRange 192.0.2.1',
      'Service default/b PortOutOfRange 80',
      'Service default/c ClusterIPNotValid x',
    ]);
  });
});
