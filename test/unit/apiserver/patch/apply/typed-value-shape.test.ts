import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeManagers, type Managers } from '../../../../../src/apiserver/patch/apply/managers.ts';
import { noOtherVersions } from '../../../../../src/apiserver/patch/apply/managers.ts';
import { PathElementError } from '../../../../../src/apiserver/patch/apply/field-set.ts';
import { shapeOf } from '../../../../../src/apiserver/patch/apply/typed-value.ts';
import {
  emptyObject,
  recordUpdate,
  trackUpdate,
  untracked,
} from '../../../../../src/apiserver/patch/apply/track-update.ts';
import { builtinSchema } from '../../../../../src/apiserver/schema/builtin.ts';
import { decodeValue } from '../../../../../src/apiserver/schema/decode.ts';
import { recordAt } from '../../../../../src/objects/json.ts';
import type { KubeObject } from '../../../../../src/objects/meta.ts';

const schema = builtinSchema('io.k8s.api.core.v1.Service');

const word = fc.constantFrom('', 'a', 'b', '0', '1:a');
const words = fc.dictionary(word, word, { maxKeys: 2 });
const optional = { requiredKeys: [] };
const port = fc.record(
  {
    name: word,
    port: fc.constantFrom(0, 80, 81),
    protocol: fc.constantFrom('TCP', 'UDP'),
    targetPort: fc.constantFrom<string | number>(0, 80, 'a'),
  },
  optional,
);
const service = fc.record({
  metadata: fc.record(
    {
      name: word,
      labels: words,
      annotations: words,
      finalizers: fc.array(word, { maxLength: 2 }),
    },
    optional,
  ),
  spec: fc.record(
    {
      selector: words,
      ports: fc.array(port, { maxLength: 3 }),
      externalIPs: fc.array(word, { maxLength: 2 }),
      type: word,
      publishNotReadyAddresses: fc.boolean(),
      sessionAffinityConfig: fc.record(
        { clientIP: fc.record({ timeoutSeconds: fc.constantFrom(0, 5) }) },
        optional,
      ),
    },
    optional,
  ),
  status: fc.constantFrom({}, { loadBalancer: {} }, { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } }),
});

function decoded(value: unknown): KubeObject {
  const { object } = decodeValue(schema, value);
  return { ...object, apiVersion: 'v1', kind: 'Service', metadata: recordAt(object['metadata']) };
}

/** Another object with the same names in it, but other texts where there is one. */
function altered(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_name, member: unknown) =>
    typeof member === 'string' && member !== '' ? `${member}-` : member,
  );
}

/** Whatever was created before: what a create owns does not depend on it. */
test('what is known of a shape is what a new object of that shape would be found to own', () => {
  const update = {
    schema,
    subresource: '',
    apiVersion: 'v1',
    now: '2024-01-01T00:00:01Z',
    ownable: { resetFields: [['status']] },
  };
  const shapes = new Set<string>();
  let repeated = 0;
  const check = (next: KubeObject, manager: string): void => {
    const found = trackUpdate({ ...update, live: undefined, next, manager });
    const managers: Managers = new Map();
    try {
      recordUpdate(managers, { ...update, manager }, emptyObject(schema), untracked(next), noOtherVersions);
    } catch (error) {
      expect(error).toBeInstanceOf(PathElementError);
      expect(found).toBeUndefined();
      return;
    }
    expect(found).toEqual(managers.size === 0 ? undefined : encodeManagers(managers));
    const shape = shapeOf(schema, next);
    if (shapes.has(shape)) repeated++;
    shapes.add(shape);
  };
  fc.assert(
    fc.property(service, (value) => {
      check(decoded(value), '');
      check(decoded(altered(value)), 'another');
    }),
    { numRuns: 500 },
  );
  expect(repeated).toBeGreaterThan(20);
});
