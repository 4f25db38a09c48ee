import { expect, test } from 'vitest';
import { gatewayClassStatus, supportedFeatures } from '../../../../src/network/gateway/status.ts';
import type { GatewayClass } from '../../../../src/objects/types/gateway.ts';
import { words } from './objects.ts';

const ours: GatewayClass = {
  metadata: { name: 'servicenet', generation: 3 },
  spec: { controllerName: 'servicenet.dev/gateway' },
};

test.each([
  ['v1.6.3', 'Accepted SupportedVersion'],
  ['v1.6.0-rc.1', 'Accepted SupportedVersion'],
  ['v1.60.0', 'Accepted !SupportedVersion=UnsupportedVersion'],
  ['v1.5.0', 'Accepted !SupportedVersion=UnsupportedVersion'],
  [undefined, 'Accepted !SupportedVersion=UnsupportedVersion'],
])('with definitions of %s', (version, expected) => {
  const { conditions } = gatewayClassStatus(ours, version, 0);
  expect(words(conditions)).toBe(expected);
  expect(conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([3, 3]);
});

test('parameters are not supported', () => {
  const spec = { ...ours.spec, parametersRef: { group: '', kind: 'ConfigMap', name: 'a', namespace: 'b' } };
  expect(words(gatewayClassStatus({ ...ours, spec }, 'v1.6.3', 0).conditions)).toBe(
    '!Accepted=InvalidParameters SupportedVersion',
  );
});

test('features are sorted and listed once, as the API wants them', () => {
  expect(supportedFeatures).toEqual([...new Set(supportedFeatures)].toSorted());
  expect(supportedFeatures.length).toBeLessThanOrEqual(64);
});
