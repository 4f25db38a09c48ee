import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listOptions } from '../../../../src/apiserver/rest/options.ts';
import { listFilterOf } from '../../../../src/apiserver/rest/output.ts';
import { serveResource } from '../../../../src/apiserver/rest/served-resource.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { encodeObject } from '../../../../src/apiserver/schema/encode.ts';
import { tableConverter } from '../../../../src/apiserver/tables/converters.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { ServiceAllocators } from '../../../../src/registry/core/service/allocators.ts';
import { createServiceStrategy } from '../../../../src/registry/core/service/strategy.ts';
import { certificateReader } from '../../../../src/apiserver/pki/signing-request.ts';
import { builtInResources } from '../../../../src/registry/catalog.ts';

const addresses = new ServiceAllocators({
  families: ['IPv4'],
  nodePortRange: { first: 30_000, last: 32_767 },
});
const definition = builtInResources({
  service: createServiceStrategy(addresses),
  addresses,
  certificates: certificateReader,
}).find(({ plural }) => plural === 'pods');
if (definition === undefined) throw new Error('there are no Pods');
const pods = serveResource(definition, builtinSchema(definition.schema), () => tableConverter('', 'Pod'));

const name = fc.constantFrom('a', 'b', '1', 'true', 'x.y');
const labels = fc.dictionary(name, fc.constantFrom('', 'a', 'b', '1'));
const pod = fc.record({
  kind: fc.constant('Pod'),
  apiVersion: fc.constant('v1'),
  metadata: fc.record({ name, namespace: name, labels }, { requiredKeys: ['name'] }),
  spec: fc.record({ nodeName: name, hostNetwork: fc.boolean() }, { requiredKeys: [] }),
  status: fc.record({ phase: name }, { requiredKeys: [] }),
});
const labelTerm = fc.constantFrom(
  'a',
  'a=a',
  'a==b',
  'a!=a',
  'a in (a,b)',
  'a in (,b)',
  'a notin (a)',
  '!a',
  'b=1',
  'x.y=',
);
const fieldTerm = fc.oneof(
  fc.tuple(
    fc.constantFrom('metadata.name', 'spec.nodeName', 'status.phase'),
    fc.constantFrom('=', '!='),
    name,
  ),
  fc.tuple(fc.constant('spec.hostNetwork'), fc.constantFrom('=', '!='), fc.constantFrom('true', 'false')),
  fc.tuple(fc.constant('spec.nodeName'), fc.constant('='), fc.constantFrom('', 'a b', 'ü', '<')),
);

describe('listFilterOf', () => {
  it('tells from the JSON alone only what the object does not match', () => {
    let told = 0;
    let matching = 0;
    fc.assert(
      fc.property(
        pod,
        fc.array(labelTerm, { maxLength: 2 }),
        fc.array(fieldTerm, { maxLength: 2 }),
        (object: KubeObject, labelTerms, fieldTerms) => {
          const query = new URLSearchParams({
            labelSelector: labelTerms.join(','),
            fieldSelector: fieldTerms.map((term) => term.join('')).join(','),
          });
          const selection = listFilterOf(pods, listOptions(query, false));
          const mayMatch = selection.mayMatch(encodeObject(pods.schema, object));
          if (selection.matches(object)) expect(mayMatch).toBe(true);
          matching += Number(selection.matches(object));
          told += Number(!mayMatch);
        },
      ),
      { numRuns: 2000 },
    );
    expect(matching).toBeGreaterThan(100);
    expect(told).toBeGreaterThan(100);
  });
});
