import { describe, expect, it } from 'vitest';
import { planForwarding } from '../../../src/network/forwarding/planner.ts';
import { verdictFor } from '../../../src/network/forwarding/verdict.ts';
import { backendEndpoints } from '../../../src/network/http/backends.ts';
import { chosenEndpoints, servingRank } from '../../../src/objects/endpoints.ts';
import type { Endpoint, EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import { zoneOf } from '../network/dns/fixtures.ts';
import { answer } from '../../../src/network/dns/answer.ts';
import {
  localPodIP,
  node,
  options,
  ownNodeIP,
  service,
  serviceIP,
  slice,
} from '../network/forwarding/fixtures.ts';

/** In the order of how well they serve. */
const states: readonly (readonly [string, NonNullable<Endpoint['conditions']>])[] = [
  ['gone', { ready: false, serving: false, terminating: true }],
  ['not ready', { ready: false, serving: false, terminating: false }],
  ['serving, not ready', { ready: false, serving: true, terminating: false }],
  ['draining', { ready: false, serving: true, terminating: true }],
  ['ready', { ready: true, serving: true, terminating: false }],
  ['of no condition', {}],
];
const pairs = states.flatMap(([first, a]) => states.map(([second, b]) => [first, second, a, b] as const));

describe('an endpoint', () => {
  it('ranks by its conditions alone', () => {
    expect(states.map(([, conditions]) => servingRank({ conditions }))).toEqual([0, 0, 1, 2, 3, 3]);
  });

  it('that drains is chosen where none is ready', () => {
    const chosen = (from: typeof states): readonly string[] =>
      chosenEndpoints(from, ([, conditions]) => ({ conditions })).map(([name]) => name);
    expect(chosen(states)).toEqual(['ready', 'of no condition']);
    expect(chosen(states.slice(0, 4))).toEqual(['draining']);
    expect(chosen(states.slice(0, 3))).toEqual([]);
  });
});

describe.each([
  ['in one slice', (a: Endpoint, b: Endpoint) => [slice([a, b])]],
  ['in two', (a: Endpoint, b: Endpoint) => [slice([a]), slice([b], {}, { name: 'web-2' })]],
])('two Pods of one address %s', (_, slicesOf) => {
  describe.each(pairs)('one %s, one %s', (_first, _second, a, b) => {
    const endpoint = (conditions: Endpoint['conditions']): Endpoint => ({
      ...{ addresses: [ownNodeIP], nodeName: 'here' },
      ...(conditions === undefined ? {} : { conditions }),
    });
    const slices: EndpointSlice[] = slicesOf(endpoint(a), endpoint(b));
    const best = Math.max(servingRank({ conditions: a }), servingRank({ conditions: b }));
    const spec = {
      ...{ type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_999 },
      ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 30_080 }],
    };

    it('are reached by the agent, counted by its health check, and routed to as the one that serves best', () => {
      const plan = planForwarding([service(spec)], slices, node(), options());
      const verdict = verdictFor(plan, {
        ...{ source: 'pod', sourceAddress: localPodIP, protocol: 'TCP' },
        ...{ destinationAddress: serviceIP, destinationPort: 80 },
      });
      expect(verdict.verdict).toBe(best >= 2 ? 'forward' : 'reject');
      const [check] = plan.services.get('default/web')?.healthChecks ?? [];
      expect(check?.localEndpoints).toBe(best === 3 ? 1 : 0);
      const routed = backendEndpoints({ port: 80 }, 'Ingress', service(spec), slices);
      expect(routed.endpoints).toEqual(best >= 2 ? [{ address: ownNodeIP, port: 8080 }] : []);
    });

    it('have the name of a headless Service where one is ready', () => {
      const headless = { ...service({ clusterIP: 'None', clusterIPs: ['None'] }) };
      const zone = zoneOf({ namespaces: ['default'], services: [headless], slices });
      const found = answer(zone, { name: 'web.default.svc.cluster.local', type: 'A' });
      expect(found?.answers.map((record) => ('address' in record ? record.address : ''))).toEqual(
        best === 3 ? [ownNodeIP] : [],
      );
    });
  });
});
