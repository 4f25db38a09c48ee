import { isRecord } from '../../../../src/objects/json.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';

/** A Service as a server stores it. */
export function service(
  name: string,
  spec: Partial<ServiceSpec>,
  metadata: Service['metadata'] = {},
): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: { type: 'ClusterIP', ports: [{ port: 80 }], ...spec },
    status: {},
  };
}

/** A Service from a faulty server. */
export function broken(text: string): Service {
  const value: unknown = JSON.parse(text);
  if (!isSent(value)) throw new Error('not an object');
  return value;
}

/** All that a cache checks. */
function isSent(value: unknown): value is Service {
  return isRecord(value) && isRecord(value['metadata']) && isRecord(value['spec']);
}
