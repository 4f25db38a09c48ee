import { describe, expect, it } from 'vitest';
import {
  assignNodePorts,
  decideAddressing,
  fits,
  lacksHealthCheckPort,
  missingNodePorts,
} from '../../../../src/controllers/service-allocation/plan-needs.ts';
import { viewOf } from '../../../../src/controllers/service-allocation/plan-view.ts';
import type { IPFamily } from '../../../../src/objects/address.ts';
import type { ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import { service } from './samples.ts';

const v4: IPFamily[] = ['IPv4'];
const v6: IPFamily[] = ['IPv6'];
const dual: IPFamily[] = ['IPv4', 'IPv6'];
const dual64: IPFamily[] = ['IPv6', 'IPv4'];

/** `S4`, `P46`, `R64`: policy and families; ✗ for a contradiction. */
function decide(spec: Partial<ServiceSpec>, cluster: IPFamily[]): string {
  const result = decideAddressing(viewOf(service('a', { selector: { a: 'b' }, ...spec })), cluster);
  if (typeof result === 'string') return '✗';
  return `${result.policy.slice(0, 1)}${result.families.map((family) => family.slice(3)).join('')}`;
}

describe('policy and families', () => {
  const single = { ipFamilyPolicy: 'SingleStack' };
  const prefer = { ipFamilyPolicy: 'PreferDualStack' };
  const require = { ipFamilyPolicy: 'RequireDualStack' };
  // On a v4, a v6, a dual v4,v6 and a dual v6,v4 cluster.
  it.each<[Partial<ServiceSpec>, string]>([
    [{}, 'S4 S6 S4 S6'],
    [single, 'S4 S6 S4 S6'],
    [{ ipFamilies: ['IPv4'] }, 'S4 ✗ S4 S4'],
    [{ ipFamilies: ['IPv6'] }, '✗ S6 S6 S6'],
    [{ ipFamilies: ['IPv4', 'IPv6'] }, '✗ ✗ ✗ ✗'],
    [prefer, 'P4 P6 P46 P64'],
    [{ ...prefer, ipFamilies: ['IPv4'] }, 'P4 ✗ P46 P46'],
    [{ ...prefer, ipFamilies: ['IPv6'] }, '✗ P6 P64 P64'],
    [{ ...prefer, ipFamilies: ['IPv6', 'IPv4'] }, '✗ ✗ P64 P64'],
    [require, '✗ ✗ R46 R64'],
    [{ ...require, ipFamilies: ['IPv4'] }, '✗ ✗ R46 R46'],
    [{ ...require, ipFamilies: ['IPv6', 'IPv4'] }, '✗ ✗ R64 R64'],
  ])('%o', (spec, expected) => {
    expect([v4, v6, dual, dual64].map((cluster) => decide(spec, cluster)).join(' ')).toBe(expected);
  });

  it('takes the families of the addresses', () => {
    expect(decide({ clusterIP: 'fd00::1' }, dual)).toBe('S6');
    expect(decide({ clusterIP: '10.0.0.1', ...prefer }, dual64)).toBe('P46');
    expect(decide({ clusterIP: '10.0.0.1', ipFamilies: ['IPv6'] }, dual)).toBe('✗');
  });

  it('allows any family for headless Services without a selector', () => {
    expect(decide({ clusterIP: 'None', selector: {} }, v4)).toBe('R46');
    expect(decide({ clusterIP: 'None', selector: {}, ...single }, v4)).toBe('S4');
    expect(decide({ clusterIP: 'None' }, v4)).toBe('S4');
  });

  it('keeps one address of two when the policy becomes SingleStack', () => {
    const spec = { ...single, clusterIPs: ['10.0.0.1', 'fd00::1'], ipFamilies: ['IPv4', 'IPv6'] };
    expect(decideAddressing(viewOf(service('a', spec)), dual)).toEqual({
      policy: 'SingleStack',
      families: ['IPv4'],
      kept: ['10.0.0.1'],
      missing: [],
    });
  });

  it('has no family while no range is known', () => {
    expect(decide({}, [])).toBe('✗');
  });
});

describe('node ports', () => {
  const ports = [
    { name: 'a', port: 53, protocol: 'UDP' },
    { name: 'b', port: 53, protocol: 'TCP' },
    { name: 'c', port: 80, nodePort: 30_080 },
    { name: 'd', port: 80, protocol: 'UDP' },
    { name: 'e', port: 443 },
  ];

  it('assigns one node port to all ports of one number, the explicit one if there is one', () => {
    const view = viewOf(service('a', { type: 'NodePort', ports }));
    expect(missingNodePorts(view)).toBe(2);
    const { ports: assigned, healthCheck } = assignNodePorts(view, {
      addresses: [],
      ports: [30_001, 30_002],
    });
    expect(assigned).toEqual([30_001, 30_001, 30_080, 30_080, 30_002]);
    expect(healthCheck).toBe(0);
  });

  it('needs none for ClusterIP or with allocateLoadBalancerNodePorts false', () => {
    expect(missingNodePorts(viewOf(service('a', { ports })))).toBe(0);
    const off = viewOf(service('a', { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports }));
    expect(missingNodePorts(off)).toBe(0);
    expect(assignNodePorts(off, { addresses: [], ports: [] }).ports).toEqual([0, 0, 30_080, 0, 0]);
    expect(assignNodePorts(viewOf(service('a', { ports })), { addresses: [], ports: [] }).ports).toEqual([
      0, 0, 0, 0, 0,
    ]);
  });

  it('takes a health check port from the claim after the node ports', () => {
    const view = viewOf(service('a', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }));
    expect(lacksHealthCheckPort(view)).toBe(true);
    const claim = { addresses: ['10.0.0.7'], ports: [30_001, 30_002] };
    expect(assignNodePorts(view, claim)).toEqual({ ports: [30_001], healthCheck: 30_002 });
    const addressing = decideAddressing(view, v4);
    if (typeof addressing === 'string') throw new Error(addressing);
    expect(fits(view, addressing, claim)).toBe(true);
    expect(fits(view, addressing, { ...claim, ports: [30_001] })).toBe(false);
    expect(fits(view, addressing, { ...claim, addresses: ['fd00::7'] })).toBe(false);
  });
});
