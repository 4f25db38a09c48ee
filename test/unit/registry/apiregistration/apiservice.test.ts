import { describe, expect, test } from 'vitest';
import { create, definitionOf, now, update } from '../decide.ts';

const kind = definitionOf('APIService');
const spec = { group: 'example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 10 };
const metadata = { name: 'v1.example.com' };

describe('an APIService', () => {
  test('without a Service is available', () => {
    expect(create(kind, { metadata, spec }).object).toMatchObject({
      status: {
        conditions: [
          {
            ...{ type: 'Available', status: 'True', lastTransitionTime: now, reason: 'Local' },
            message: 'Local APIServices are always available',
          },
        ],
      },
    });
  });

  test('with a Service has no condition yet, and keeps what the aggregator writes', () => {
    const service = { namespace: 'ns', name: 'api' };
    const { object, stored } = create(kind, { metadata, spec: { ...spec, service } });
    expect(object).toMatchObject({ spec: { service: { ...service, port: 443 } }, status: {} });
    const status = { conditions: [{ type: 'Available', status: 'False', reason: 'ServiceNotFound' }] };
    const checked = { ...stored, status };
    expect(update(kind, checked, { spec }).object).toMatchObject({ status });
  });

  test.each([
    [
      { ...spec, version: 'v2' },
      [
        'metadata.name: Invalid value: "v1.example.com": must be `spec.version+"."+spec.group`: "v2.example.com"',
      ],
    ],
    [
      { ...spec, groupPriorityMinimum: 20_001, versionPriority: 0 },
      [
        'spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000',
        'spec.versionPriority: Invalid value: 0: must be positive and less than 1000',
      ],
    ],
    [
      { ...spec, caBundle: 'YWJj', insecureSkipTLSVerify: true },
      [
        'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle',
        'spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify',
      ],
    ],
    [
      { ...spec, service: {}, caBundle: 'YWJj', insecureSkipTLSVerify: true },
      [
        'spec.service.namespace: Required value',
        'spec.service.name: Required value',
        'spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present',
      ],
    ],
  ])('with %j is refused', (given, errors) => {
    expect(create(kind, { metadata, spec: given }).errors).toEqual(errors);
  });
});
