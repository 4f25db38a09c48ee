import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { defaultOnRead, isDecoratedService } from '../../../../../src/registry/core/service/normalize.ts';
import type { IPFamily } from '../../../../../src/objects/address.ts';
import type { Service } from '../../../../../src/objects/types/core.generated.ts';

const address = fc.constantFrom('10.0.0.1', 'None', '');
const families = fc.constantFrom<IPFamily[]>([], ['IPv4'], ['IPv4', 'IPv6']);
const service = fc.record({
  metadata: fc.record({
    name: fc.constant('web'),
    annotations: fc.constantFrom<Record<string, string>>(
      {},
      { old: '{"clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"]}' },
    ),
  }),
  spec: fc.record(
    {
      type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
      clusterIP: address,
      clusterIPs: fc.constantFrom<string[]>([], ['10.0.0.1'], ['None']),
      ipFamilies: families,
      selector: fc.constantFrom<Record<string, string>>({}, { ipFamilies: 'a' }),
    },
    { requiredKeys: ['type'] },
  ),
  status: fc.constant({}),
});
const externalName = fc.record({
  metadata: fc.constant({ name: 'web' }),
  spec: fc.record(
    { type: fc.constant('ExternalName'), internalTrafficPolicy: fc.constant('Cluster') },
    { requiredKeys: ['type'] },
  ),
  status: fc.constant({}),
});

test('an ExternalName that a change of type left with another cluster IP is shown with the plural', () => {
  const spec = { type: 'ExternalName', externalName: 'x', clusterIP: '10.0.0.9' };
  const shown = defaultOnRead({ metadata: { name: 'web' }, spec, status: {} }, 'IPv4').spec;
  expect(shown).toEqual({ ...spec, clusterIPs: ['10.0.0.9'] });
});

describe('isDecoratedService', () => {
  it('says of no JSON that nothing is to be changed where something is, and says it of whole Services', () => {
    let whole = 0;
    fc.assert(
      fc.property(fc.oneof(service, externalName), (object: Service) => {
        const decorated = isDecoratedService(JSON.stringify(object));
        if (decorated) expect(defaultOnRead(object, 'IPv4')).toBe(object);
        whole += Number(decorated);
      }),
      { numRuns: 500 },
    );
    expect(whole).toBeGreaterThan(10);
  });
});
