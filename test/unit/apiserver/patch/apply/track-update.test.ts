import { describe, expect, it } from 'vitest';

import { managerName } from '../../../../../src/apiserver/rest/commit.ts';
import { trackConverting, trackUpdate } from '../../../../../src/apiserver/patch/apply/track-update.ts';
import { builtinSchema } from '../../../../../src/apiserver/schema/builtin.ts';
import { decodeValue } from '../../../../../src/apiserver/schema/decode.ts';
import { schemaFromCustomResource } from '../../../../../src/apiserver/schema/custom-object.ts';
import type { FieldsV1, KubeObject, ManagedFieldsEntry } from '../../../../../src/objects/meta.ts';
import { internalError } from '../../../../../src/objects/status.ts';
import type { Service } from '../../../../../src/objects/types/core.generated.ts';

const schema = builtinSchema('io.k8s.api.core.v1.Service');

function service(spec: object = {}, metadata: object = {}): KubeObject {
  const { object } = decodeValue(schema, {
    apiVersion: 'v1',
    kind: 'Service',
    spec: {
      type: 'ClusterIP',
      selector: { app: 'a' },
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      ...spec,
    },
  });
  return { ...object, metadata: { name: 'a', uid: 'u', ...metadata } };
}

function at(second: number): string {
  return `2024-01-01T00:00:${String(second).padStart(2, '0')}Z`;
}

interface Options {
  subresource?: string;
  second?: number;
}

function track(
  live: KubeObject | undefined,
  next: KubeObject,
  manager: string,
  { subresource = '', second = 0 }: Options = {},
) {
  return trackUpdate({
    schema,
    live,
    next,
    manager,
    subresource,
    apiVersion: 'v1',
    now: at(second),
    ownable: { resetFields: [[subresource === 'status' ? 'spec' : 'status']] },
  });
}

function tracked(
  live: KubeObject | undefined,
  next: KubeObject,
  manager: string,
  options?: Options,
): KubeObject {
  const managedFields = track(live, next, manager, options);
  const { managedFields: _before, ...metadata } = next.metadata;
  return { ...next, metadata: { ...metadata, ...(managedFields === undefined ? {} : { managedFields }) } };
}

function entry(manager: string, second: number, fieldsV1: FieldsV1, subresource = ''): ManagedFieldsEntry {
  return {
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time: at(second),
    fieldsType: 'FieldsV1',
    fieldsV1,
    ...(subresource === '' ? {} : { subresource }),
  };
}

describe('trackUpdate', () => {
  it('records a create as kube-apiserver does', () => {
    const created = service(
      {},
      {
        labels: { l: '1' },
        finalizers: ['f'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'o' }],
      },
    );
    expect(track(undefined, created, 'kubectl-create')).toEqual([
      entry('kubectl-create', 0, {
        'f:metadata': {
          'f:finalizers': { '.': {}, 'v:"f"': {} },
          'f:labels': { '.': {}, 'f:l': {} },
          'f:ownerReferences': { '.': {}, 'k:{"uid":"o"}': {} },
        },
        'f:spec': {
          'f:ports': {
            '.': {},
            'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:protocol': {}, 'f:targetPort': {} },
          },
          'f:selector': {},
          'f:type': {},
        },
      }),
    ]);
  });

  it('moves what another manager changes, and keeps the time of entries that did not change', () => {
    const first = tracked(undefined, service(), 'a');
    const next = tracked(first, service({ type: 'NodePort' }), 'b', { second: 5 });
    expect(next.metadata.managedFields).toEqual([
      entry('a', 0, {
        'f:spec': {
          'f:ports': {
            '.': {},
            'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:protocol': {}, 'f:targetPort': {} },
          },
          'f:selector': {},
        },
      }),
      entry('b', 5, { 'f:spec': { 'f:type': {} } }),
    ]);
    const again = tracked(next, service({ type: 'LoadBalancer' }), 'b', { second: 9 });
    expect(again.metadata.managedFields?.map(({ time }) => time)).toEqual([at(0), at(9)]);
    const removed = tracked(again, service({ type: 'LoadBalancer', selector: undefined }), 'b', {
      second: 9,
    });
    expect(JSON.stringify(removed.metadata.managedFields)).not.toContain('f:selector');
  });

  it('answers the stored entries when nothing changes', () => {
    const first = tracked(undefined, service(), 'a');
    expect(track(first, structuredClone(first), 'b', { second: 9 })).toBe(first.metadata.managedFields);
    expect(track(first, service(), 'b', { second: 9 })).toBe(first.metadata.managedFields);
  });

  it('keeps spec and status apart', () => {
    const first = tracked(undefined, service(), 'a');
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    const changed: Service = { ...service({ type: 'NodePort' }), spec: { type: 'NodePort' }, status };
    const both = track(first, changed, 'lb', { subresource: 'status', second: 1 });
    expect(both?.[1]).toEqual(
      entry('lb', 1, { 'f:status': { 'f:loadBalancer': { 'f:ingress': {} } } }, 'status'),
    );
    expect(JSON.stringify(track(first, changed, 'b'))).not.toContain('f:status');
  });

  it.each([[[]], [[{}]]])(
    'gives up tracking for managedFields %j, until the object is applied',
    (managedFields) => {
      const first = tracked(undefined, service(), 'a');
      const reset = tracked(first, service({ type: 'NodePort' }, { managedFields }), 'a');
      expect(reset.metadata.managedFields).toBeUndefined();
      expect(track(reset, service({ type: 'ClusterIP' }), 'a')).toBeUndefined();
    },
  );

  it('takes managedFields that a client changed, if they make sense', () => {
    const first = tracked(undefined, service(), 'a');
    const mine = [entry('me', 1, { 'f:spec': { 'f:type': {} } })];
    expect(track(first, service({}, { managedFields: mine }), 'b')).toEqual(mine);
    for (const broken of [
      [{ ...mine[0], operation: 'Own' }],
      [{ ...mine[0], apiVersion: '' }],
      [{ ...mine[0], fieldsType: 'FieldsV2' }],
      [{ ...mine[0], fieldsV1: { bogus: {} } }],
    ]) {
      expect(track(first, service({}, { managedFields: broken }), 'b')).toBe(first.metadata.managedFields);
    }
    expect(track(first, service({}, { managedFields: mine }), 'b', { subresource: 'status' })).toBe(
      first.metadata.managedFields,
    );
  });

  it('keeps ten updates apart and merges older ones', () => {
    let live = tracked(undefined, service(), 'm0');
    for (let i = 1; i <= 12; i++) {
      const labels = { ...live.metadata.labels, [`l${i}`]: '' };
      const { managedFields } = live.metadata;
      live = tracked(live, service({}, { labels, managedFields }), `m${i}`, { second: i });
    }
    const entries = live.metadata.managedFields ?? [];
    expect(entries.map(({ manager }) => manager)).toEqual([
      'ancient-changes',
      'm4',
      'm5',
      'm6',
      'm7',
      'm8',
      'm9',
      'm10',
      'm11',
      'm12',
    ]);
    expect(entries[0]?.time).toBe(at(3));
    expect(JSON.stringify(entries[0]?.fieldsV1)).toContain('f:l3');
    expect(JSON.stringify(entries[0]?.fieldsV1)).toContain('f:selector');
  });

  it('gives way to validation when list items have no identity', () => {
    const custom = schemaFromCustomResource(
      {
        properties: {
          list: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
            items: { type: 'object', properties: { k: { type: 'string' } } },
          },
        },
      },
      'X',
    );
    const next = Object.assign(service(), { list: [{ other: 1 }, null, 'x'] });
    const update = {
      schema: custom,
      live: undefined,
      next,
      manager: 'a',
      subresource: '',
      apiVersion: 'v1',
      now: at(0),
      ownable: {},
    };
    expect(trackUpdate(update)).toBeUndefined();
  });
});

describe('trackConverting', () => {
  it('keeps the owners that there were where the object cannot be converted', async () => {
    const live = tracked(undefined, service(), 'a');
    const [owner] = live.metadata.managedFields ?? [];
    if (owner === undefined) throw new Error('no owner');
    live.metadata.managedFields = [{ ...owner, apiVersion: 'v2' }];
    const update = {
      schema,
      live,
      next: service({ type: 'NodePort' }),
      manager: 'b',
      subresource: '',
      apiVersion: 'v1',
      now: at(1),
      ownable: {},
    };
    const versions = {
      schemaOf: () => schema,
      toVersion: async () => Promise.reject(internalError('the webhook is away')),
    };
    expect(await trackConverting(update, versions)).toEqual(live.metadata.managedFields);
  });
});

describe('managerName', () => {
  it.each([
    ['mine', 'kubectl/v1.36', 'mine'],
    [null, 'kubectl/v1.36 (linux/amd64)', 'kubectl'],
    ['', 'curl', 'curl'],
    [null, undefined, 'unknown'],
    [null, '/x', 'unknown'],
    [null, 'a\u0007b\u00a0c/1', 'abc'],
    [null, 'ä'.repeat(100), 'ä'.repeat(64)],
  ])('of %j and %j is %j', (fieldManager, userAgent, name) => {
    expect(managerName(fieldManager, userAgent)).toBe(name);
  });
});
