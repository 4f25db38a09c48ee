/**
 * What an object costs on its way through the server: `node test/bench/objects.ts`. Parse, decode and encode of a
 * Service as kubectl creates it, recording who owns it, and the patch types against a PUT of the same change.
 * Prints a table and writes bench-results/objects.json.
 */
import { applyObject } from '../../src/apiserver/patch/apply/apply.ts';
import { trackUpdate } from '../../src/apiserver/patch/apply/track-update.ts';
import { patchObject, type PatchType } from '../../src/apiserver/patch/patch.ts';
import { builtinSchema } from '../../src/apiserver/schema/builtin.ts';
import { decodeBody, type ExpectedKind } from '../../src/apiserver/schema/decode-body.ts';
import { decodeStruct } from '../../src/apiserver/schema/decode.ts';
import { encodeObject } from '../../src/apiserver/schema/encode.ts';
import { parseJson } from '../../src/apiserver/schema/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { report, type Row } from './report.ts';

const schema = builtinSchema('io.k8s.api.core.v1.Service');
const expected: ExpectedKind = { group: '', version: 'v1', kind: 'Service', schema };
const config = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default', labels: { app: 'web', tier: 'front' } },
  spec: {
    type: 'ClusterIP',
    selector: { app: 'web' },
    sessionAffinity: 'None',
    internalTrafficPolicy: 'Cluster',
    ports: [
      { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 },
      { name: 'https', port: 443, protocol: 'TCP', targetPort: 8443 },
    ],
  },
};
const now = '2024-01-01T00:00:00Z';
const body = Buffer.from(JSON.stringify(config));
const parsed = parseJson(body);
const update = {
  schema,
  manager: 'bench',
  subresource: '',
  apiVersion: 'v1',
  now,
  ownable: { resetFields: [['status']] },
};

function decoded(): KubeObject {
  const request = {
    bytes: body,
    contentType: 'application/json',
    expected,
    fieldValidation: 'Warn',
  } as const;
  return decodeBody(request).object;
}

const first = decoded();
const live: KubeObject = {
  ...first,
  metadata: {
    ...first.metadata,
    uid: '11111111-2222-3333-4444-555555555555',
    resourceVersion: '1',
    creationTimestamp: now,
    managedFields: trackUpdate({ ...update, live: undefined, next: first }) ?? [],
  },
};
const changed = JSON.stringify({ ...config, spec: { ...config.spec, sessionAffinity: 'ClientIP' } });

function patch(type: PatchType, text: string): () => unknown {
  const bytes = Buffer.from(text);
  return () => {
    const { object } = patchObject({ type, bytes, live, expected, fieldValidation: 'Warn' });
    return trackUpdate({ ...update, live, next: object });
  };
}

const applied = Buffer.from(changed);
const large = Buffer.from(JSON.stringify(Array.from({ length: 1_000 }, () => config)));
const merge = '{"spec":{"sessionAffinity":"ClientIP"}}';

/** The best of five rounds, in µs. */
function measure(run: () => unknown, times: number): number {
  let best = Infinity;
  for (let round = 0; round < 5; round++) {
    const start = performance.now();
    for (let i = 0; i < times; i++) run();
    best = Math.min(best, ((performance.now() - start) * 1000) / times);
  }
  return best;
}

const rows: Row[] = [
  { name: 'parse', value: large.length / measure(() => parseJson(large), 20), unit: 'MB/s', budget: '>= 50' },
  { name: 'decode a parsed Service', value: measure(() => decodeStruct(schema, parsed), 20_000), unit: 'µs' },
  { name: 'read a Service', value: measure(decoded, 20_000), unit: 'µs' },
  {
    name: 'encode it',
    value: measure(() => encodeObject(schema, live), 20_000),
    unit: 'µs',
    budget: '<= 10',
  },
  {
    name: 'track a create',
    value: measure(() => trackUpdate({ ...update, live: undefined, next: first }), 20_000),
    unit: 'µs',
    budget: '<= 20',
  },
  {
    name: 'PUT: read and track',
    value: measure(() => trackUpdate({ ...update, live, next: decoded() }), 10_000),
    unit: 'µs',
  },
  { name: 'merge patch', value: measure(patch('merge', merge), 5_000), unit: 'µs' },
  { name: 'strategic merge patch', value: measure(patch('strategic', merge), 5_000), unit: 'µs' },
  {
    name: 'JSON patch',
    value: measure(
      patch('json', '[{"op":"replace","path":"/spec/sessionAffinity","value":"ClientIP"}]'),
      5_000,
    ),
    unit: 'µs',
  },
  {
    name: 'apply, forced',
    value: measure(
      () =>
        applyObject({
          bytes: applied,
          live,
          expected,
          fieldValidation: 'Warn',
          manager: 'bench',
          force: true,
          subresource: '',
          now,
          ownable: { resetFields: [['status']] },
          setDefaults: () => undefined,
        }),
      5_000,
    ),
    unit: 'µs',
  },
];
await report('objects', rows);
