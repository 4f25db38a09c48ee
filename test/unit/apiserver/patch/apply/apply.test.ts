import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { applyObject } from '../../../../../src/apiserver/patch/apply/apply.ts';
import { trackUpdate } from '../../../../../src/apiserver/patch/apply/track-update.ts';
import { builtinSchema } from '../../../../../src/apiserver/schema/builtin.ts';
import type { ExpectedKind } from '../../../../../src/apiserver/schema/decode-body.ts';
import { schemaFromCustomResource } from '../../../../../src/apiserver/schema/custom-object.ts';
import { isRecord, type JsonRecord } from '../../../../../src/objects/json.ts';
import type { KubeObject } from '../../../../../src/objects/meta.ts';
import { StatusError } from '../../../../../src/objects/status.ts';

const configMap: ExpectedKind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  schema: builtinSchema('io.k8s.api.core.v1.ConfigMap'),
};
const service: ExpectedKind = {
  group: '',
  version: 'v1',
  kind: 'Service',
  schema: builtinSchema('io.k8s.api.core.v1.Service'),
};

interface Options {
  live?: KubeObject | undefined;
  expected?: ExpectedKind;
  force?: boolean;
  subresource?: string;
  now?: string;
  fieldValidation?: 'Warn' | 'Strict';
}

/** Applies, and gives a created object its uid, as the server would. */
function applyText(manager: string, text: string, options: Options = {}) {
  const { live, expected = configMap, force = false, subresource = '', fieldValidation = 'Warn' } = options;
  const steps = applyObject({
    bytes: Buffer.from(text),
    live,
    expected,
    fieldValidation,
    manager,
    force,
    subresource,
    now: options.now ?? '2024-01-01T00:00:00Z',
    ownable: expected === service ? { resetFields: [[subresource === 'status' ? 'spec' : 'status']] } : {},
    setDefaults: (next) => {
      const spec: unknown = Reflect.get(next, 'spec');
      for (const port of portsOf(spec)) {
        port['protocol'] ??= 'TCP';
        port['targetPort'] ??= port['port'];
      }
    },
  });
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  const { object, warnings } = step.value;
  return { object: { ...object, metadata: { uid: 'u', ...object.metadata } }, warnings };
}

function apply(manager: string, config: object, options: Options = {}): KubeObject {
  const { kind = 'ConfigMap' } = options.expected ?? {};
  return applyText(
    manager,
    JSON.stringify({ apiVersion: 'v1', kind, metadata: { name: 'a' }, ...config }),
    options,
  ).object;
}

function member(object: KubeObject, name: string): unknown {
  const value: unknown = Reflect.get(object, name);
  return value;
}

function portsOf(spec: unknown): JsonRecord[] {
  const list: unknown = isRecord(spec) ? spec['ports'] : [];
  return (Array.isArray(list) ? list : []).filter((item): item is JsonRecord => isRecord(item));
}

function errorOf(run: () => unknown): StatusError {
  try {
    run();
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

function owners(object: KubeObject): Record<string, unknown> {
  return Object.fromEntries(
    (object.metadata.managedFields ?? []).map((row) => [row.manager ?? '', row.fieldsV1]),
  );
}

describe('applyObject', () => {
  it('creates, and owns what it sets', () => {
    const object = apply('m', { metadata: { name: 'a', labels: { l: '1' } }, data: { k: 'v' } });
    expect(object).toMatchObject({
      kind: 'ConfigMap',
      data: { k: 'v' },
      metadata: { name: 'a', labels: { l: '1' } },
    });
    expect(owners(object)).toEqual({
      m: { 'f:data': { 'f:k': {} }, 'f:metadata': { 'f:labels': { 'f:l': {} } } },
    });
  });

  it('removes what its manager no longer applies, unless another manager does', () => {
    let live = apply('m1', { data: { x: '1', y: '2' } });
    live = apply('m2', { data: { y: '2' } }, { live });
    live = apply('m1', { data: {} }, { live });
    expect(member(live, 'data')).toEqual({ y: '2' });
    live = apply('m2', {}, { live });
    expect(member(live, 'data')).toBeUndefined();
    // It still applies the map itself, though nothing is in it.
    expect(owners(live)).toEqual({ m1: { 'f:data': {} } });
    expect(apply('m1', {}, { live }).metadata).toEqual({ name: 'a', uid: 'u' });
  });

  it('conflicts with those who own what it would change, unless forced', () => {
    const live = apply('m1', { metadata: { name: 'a', labels: { l: '1' } }, data: { x: '1', y: '1' } });
    const config = { metadata: { name: 'a', labels: { l: '2' } }, data: { x: '2', y: '1' } };
    const error = errorOf(() => apply('m2', config, { live }));
    expect(error.code).toBe(409);
    expect(error.reason).toBe('Conflict');
    expect(error.message).toBe(
      'Apply failed with 2 conflicts: conflicts with "m1":\n- .data.x\n- .metadata.labels.l',
    );
    expect(error.details?.causes?.[0]).toEqual({
      reason: 'FieldManagerConflict',
      message: 'conflict with "m1"',
      field: '.data.x',
    });
    const forced = apply('m2', config, { live, force: true });
    expect(owners(forced)).toEqual({
      m1: { 'f:data': { 'f:y': {} } },
      m2: { 'f:data': { 'f:x': {}, 'f:y': {} }, 'f:metadata': { 'f:labels': { 'f:l': {} } } },
    });
  });

  it('names the conflicts of each level before those below them', () => {
    const config = (port: object, type: string, label: string) => ({
      metadata: { name: 'a', labels: { l: label } },
      spec: { type, selector: { a: label }, ports: [{ port: 80, ...port }] },
    });
    const live = apply('m1', config({ name: 'x', targetPort: 1 }, 'ClusterIP', '1'), { expected: service });
    const change = config({ name: 'y', targetPort: 2 }, 'NodePort', '2');
    const { message } = errorOf(() => apply('m2', change, { live, expected: service }));
    expect(message.split('\n').slice(1)).toEqual([
      '- .metadata.labels.l',
      '- .spec.selector',
      '- .spec.type',
      '- .spec.ports[port=80,protocol="TCP"].name',
      '- .spec.ports[port=80,protocol="TCP"].targetPort',
    ]);
  });

  it('conflicts with updates, naming their version', () => {
    const live: KubeObject & { data: object } = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', uid: 'u' },
      data: { k: '1' },
    };
    const tracked = trackUpdate({
      schema: configMap.schema,
      live: undefined,
      next: live,
      manager: 'w',
      subresource: '',
      apiVersion: 'v1',
      now: '2024-01-01T00:00:00Z',
      ownable: {},
    });
    live.metadata.managedFields = tracked ?? [];
    expect(errorOf(() => apply('m', { data: { k: '2' } }, { live })).message).toBe(
      'Apply failed with 1 conflict: conflict with "w" using v1: .data.k',
    );
    expect(member(apply('m', { data: { k: '1' } }, { live }), 'data')).toEqual({ k: '1' });
  });

  it('protects an object without managed fields', () => {
    const live: KubeObject & { data: object } = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', uid: 'u' },
      data: { k: '1' },
    };
    expect(errorOf(() => apply('m', { data: { k: '2' } }, { live })).message).toContain(
      '"before-first-apply" using v1: .data.k',
    );
  });

  it('merges ports by port and protocol, the protocol being TCP by default', () => {
    const expected = service;
    let live = apply('m1', { spec: { ports: [{ name: 'x', port: 53 }] } }, { expected });
    live = apply('m2', { spec: { ports: [{ name: 'y', port: 53, protocol: 'UDP' }] } }, { expected, live });
    expect(member(live, 'spec')).toMatchObject({
      ports: [
        { name: 'x', protocol: 'TCP' },
        { name: 'y', protocol: 'UDP' },
      ],
    });
    expect(
      errorOf(() =>
        apply('m1', { spec: { ports: [{ name: 'z', port: 53, protocol: 'UDP' }] } }, { expected, live }),
      ).message,
    ).toBe('Apply failed with 1 conflict: conflict with "m2": .spec.ports[port=53,protocol="UDP"].name');
    live = apply('m1', { spec: {} }, { expected, live });
    expect(member(live, 'spec')).toMatchObject({ ports: [{ name: 'y', protocol: 'UDP' }] });
  });

  it('keeps shared items in the order of the configuration, others in their places', () => {
    const expected = service;
    const ports = (...numbers: number[]) => ({
      spec: { ports: numbers.map((port) => ({ port, protocol: 'TCP' })) },
    });
    const live = apply('m1', ports(1, 2, 3), { expected });
    const orderAfter = (...numbers: number[]) => {
      const spec = member(apply('m2', ports(...numbers), { expected, live }), 'spec');
      return portsOf(spec).map((port) => port['port']);
    };
    expect(orderAfter(3, 1)).toEqual([2, 3, 1]);
    expect(orderAfter(9, 2)).toEqual([1, 9, 2, 3]);
    expect(orderAfter(2, 9)).toEqual([1, 2, 3, 9]);
    expect(orderAfter(7, 8)).toEqual([1, 2, 3, 7, 8]);
  });

  it('owns status only through /status, and nothing else there', () => {
    const expected = service;
    const live = apply(
      'm1',
      { spec: { ports: [{ port: 80 }] }, status: { loadBalancer: { ingress: [{ ip: '1' }] } } },
      { expected },
    );
    expect(owners(live)).toEqual({
      m1: { 'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } } } },
    });
    const status = { loadBalancer: { ingress: [{ ip: '2' }] } };
    const both = apply(
      'lb',
      { spec: { type: 'NodePort' }, status },
      { expected, live, subresource: 'status' },
    );
    expect(owners(both)).toMatchObject({ lb: { 'f:status': { 'f:loadBalancer': { 'f:ingress': {} } } } });
    const error = errorOf(() =>
      apply(
        'x',
        { status: { loadBalancer: { ingress: [] } } },
        { expected, live: both, subresource: 'status' },
      ),
    );
    expect(error.message).toBe(
      'Apply failed with 1 conflict: conflict with "lb" with subresource "status": .status.loadBalancer.ingress',
    );
    expect(member(apply('lb', {}, { expected, live: both, subresource: 'status' }), 'status')).toEqual({
      loadBalancer: {},
    });
  });

  it('of the same again changes nothing, not even the time', () => {
    const live = apply('m', { data: { k: 'v' } });
    expect(apply('m', { data: { k: 'v' } }, { live, now: '2025-01-01T00:00:00Z' })).toEqual(live);
  });

  it.each([
    [
      'a: [',
      400,
      'error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content',
    ],
    [
      '- a',
      400,
      'error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}',
    ],
    ['{}', 400, 'invalid object type: /, Kind='],
    ['{"apiVersion":"apps/v1","kind":"ConfigMap"}', 400, 'invalid object type: apps/v1, Kind=ConfigMap'],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[]}}',
      400,
      'metadata.managedFields must be nil',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"bogus":1}',
      500,
      'failed to create typed patch object (/a; /v1, Kind=ConfigMap): .bogus: field not declared in schema',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":"x"}',
      500,
      'failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .data: expected map, got &{x}',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","data":{"k":1},"immutable":"x"}',
      500,
      'failed to create typed patch object (/; /v1, Kind=ConfigMap): errors:\n  .data.k: expected string, got &value.valueUnstructured{Value:1}\n  .immutable: expected boolean, got &{x}',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":{"a":["x",true]}}}',
      500,
      'failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata.name: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{"x", true}}}',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":"x"}}',
      500,
      'failed to convert new object (/; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured object to /v1, Kind=ConfigMap: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":{}}}',
      500,
      'failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata.creationTimestamp: expected any scalar, got &{map[]}',
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"finalizers":[null]}}',
      500,
      "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
    ],
    [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"finalizers":["a","a"]}}',
      500,
      'failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata.finalizers: duplicate entries for key [="a"]',
    ],
  ])('refuses %s', (text, code, message) => {
    const error = errorOf(() => applyText('m', text));
    expect(error.message).toBe(message);
    expect(error.code).toBe(code);
  });

  it('warns of repeated keys, or refuses them', () => {
    const text = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  k: a\n  k: b\n';
    const duplicate =
      'error converting YAML to JSON: yaml: unmarshal errors:\n  line 5: key "k" already set in map';
    expect(applyText('m', text).warnings).toEqual([duplicate]);
    expect(errorOf(() => applyText('m', text, { fieldValidation: 'Strict' })).message).toBe(
      `error strict decoding patch: ${duplicate}`,
    );
  });

  it('lets kubectl take over what it applied on the client side', () => {
    const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
    const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: '1' } };
    const live: KubeObject & { data: object } = {
      ...config,
      metadata: { name: 'a', uid: 'u', annotations: { [annotation]: JSON.stringify(config) } },
      data: { k: '1', other: '1' },
    };
    const tracked = trackUpdate({
      schema: configMap.schema,
      live: undefined,
      next: live,
      manager: 'kubectl-client-side-apply',
      subresource: '',
      apiVersion: 'v1',
      now: '2024-01-01T00:00:00Z',
      ownable: {},
    });
    live.metadata.managedFields = tracked ?? [];
    const object = apply('kubectl', { data: { k: '2' } }, { live });
    expect(member(object, 'data')).toEqual({ k: '2', other: '1' });
    expect(object.metadata.annotations?.[annotation]).toBe(
      '{"apiVersion":"v1","data":{"k":"2"},"kind":"ConfigMap","metadata":{"name":"a"}}\n',
    );
    expect(errorOf(() => apply('kubectl', { data: { other: '2' } }, { live })).code).toBe(409);
    expect(errorOf(() => apply('someone', { data: { k: '2' } }, { live })).code).toBe(409);
  });

  it('merges custom resources by their schema, and where there is none as maps', () => {
    const schema = schemaFromCustomResource(
      {
        type: 'object',
        properties: {
          free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
          list: { type: 'array', items: { type: 'integer' } },
        },
      },
      'X',
    );
    const expected = { group: '', version: 'v1', kind: 'X', schema };
    let live = apply('m1', { free: { a: { b: 1 } }, set: ['p'], list: [1] }, { expected });
    live = apply('m2', { free: { a: { c: [2] } }, set: ['q'] }, { expected, live });
    expect(live).toMatchObject({ free: { a: { b: 1, c: [2] } }, set: ['p', 'q'], list: [1] });
    live = apply('m1', {}, { expected, live });
    expect(live).toMatchObject({ free: { a: { c: [2] } }, set: ['q'] });
    expect(live).not.toHaveProperty('list');
  });
});

describe('whatever is applied', () => {
  const data = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2'), { maxKeys: 4 });
  const step = fc.record({ manager: fc.constantFrom('x', 'y', 'z'), data });

  // An empty map would be a value of its own, which managers can conflict about.
  const configOf = (values: object) => (Object.keys(values).length === 0 ? {} : { data: values });

  it('a value stays while a manager applies it, and is removed with the last', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let live: KubeObject | undefined;
        const applied = new Map<string, Record<string, string>>();
        for (const { manager, data: config } of steps) {
          live = apply(manager, configOf(config), { live, force: true });
          for (const [other, theirs] of applied) {
            // A forced apply takes what it changes from the others.
            const left = Object.entries(theirs).filter(
              ([key, value]) => config[key] === undefined || config[key] === value,
            );
            applied.set(other, Object.fromEntries(left));
          }
          applied.set(manager, config);
          const union = Object.assign({}, ...applied.values()) as unknown;
          expect(member(live, 'data') ?? {}).toEqual(union);
          for (const [owner, theirs] of applied) {
            const row = live.metadata.managedFields?.find((entry) => entry.manager === owner);
            expect(Object.keys(row?.fieldsV1?.['f:data'] ?? {}).sort()).toEqual(
              Object.keys(theirs)
                .map((key) => `f:${key}`)
                .sort(),
            );
          }
          expect(apply(manager, configOf(config), { live })).toEqual(live);
        }
      }),
    );
  });

  it('managers that set different things never conflict', () => {
    fc.assert(
      fc.property(data, data, (left, right) => {
        const other = Object.fromEntries(
          Object.entries(right).filter(([key, value]) => left[key] === undefined || left[key] === value),
        );
        const live = apply('x', configOf(left));
        expect(member(apply('y', configOf(other), { live }), 'data') ?? {}).toEqual({ ...left, ...other });
      }),
    );
  });
});
