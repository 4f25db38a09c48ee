import { expect, test } from 'vitest';

import { restOfPatch } from '../../../../src/apiserver/patch/strategic-merge.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';

const service = builtinSchema('io.k8s.api.core.v1.Service');
const live = { metadata: { name: 'a' }, spec: { type: 'ClusterIP', ports: [{ port: 80, name: 'p' }] } };

test.each([
  [{ metadata: { labels: { a: '1' } } }, { metadata: { labels: { a: '1' } } }],
  [{ spec: { ports: [{ port: 80 }], '$setElementOrder/ports': [{ port: 80 }], x: 1 } }, { spec: { x: 1 } }],
  [{ spec: { $retainKeys: ['type'], type: 'NodePort' } }, { spec: { type: 'NodePort' } }],
  [{ spec: { $patch: 'replace', type: 'NodePort' } }, { spec: { type: 'NodePort' } }],
  [{ metadata: { labels: { a: null, b: { c: null } } } }, { metadata: { labels: { b: {} } } }],
  [{ spec: { type: null } }, { spec: { type: null } }],
  [
    { spec: { ports: [{ $retainKeys: ['port'], port: 80 }, { port: 81, $patch: 'delete' }, { port: 82 }] } },
    { spec: { ports: [{ port: 80 }, { port: 81, $patch: 'delete' }, { port: 82 }] } },
  ],
])('%j is left as %j', (patch, rest) => {
  expect(restOfPatch(service, live, patch)).toEqual(rest);
});
