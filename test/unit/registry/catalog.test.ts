import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import resourceRows from '../../../hack/openapi/resources.json' with { type: 'json' };
import { builtinSchema } from '../../../src/apiserver/schema/builtin.ts';
import { encodeObject } from '../../../src/apiserver/schema/encode.ts';
import { StatusError } from '../../../src/objects/status.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { arbitraryOf } from './arbitrary-object.ts';
import { contextOf, create, definitions, read, update } from './decide.ts';

const rows = new Map(
  Object.entries(resourceRows).flatMap(([path, list]) =>
    list.map((row): [string, typeof row] => [`${path.replace(/^apis?\//, '')} ${row.name}`, row]),
  ),
);
const named = definitions.map((definition) => {
  const { group, version, plural } = definition;
  return [`${group === '' ? version : `${group}/${version}`} ${plural}`, definition] as const;
});

/** What kube-apiserver 1.37 stores in an older version, so that one of 1.36 can read it. */
const olderStorage = new Map([
  ['certificates.k8s.io/ClusterTrustBundle', 'v1beta1'],
  ['certificates.k8s.io/PodCertificateRequest', 'v1beta1'],
  ['resource.k8s.io/DeviceTaintRule', 'v1beta2'],
  ['storagemigration.k8s.io/StorageVersionMigration', 'v1beta1'],
]);

// Definitions that say `ready` are asked so by the server; here all are decided at once.

describe('the catalog', () => {
  it.each(named)('describes %s as kube-apiserver does', (name, definition) => {
    const row = rows.get(name);
    expect({
      singularName: definition.singular,
      kind: definition.kind,
      namespaced: definition.namespaced,
      verbs: definition.verbs,
    }).toEqual({
      singularName: row?.singularName,
      kind: row?.kind,
      namespaced: row?.namespaced,
      verbs: row?.verbs,
    });
    expect(definition.shortNames).toEqual(row !== undefined && 'shortNames' in row ? row.shortNames : []);
    expect(definition.categories).toEqual(row !== undefined && 'categories' in row ? row.categories : []);
  });

  it.each(named)('has the subresources of %s', (name, { strategy }) => {
    expect(strategy.status !== undefined).toBe(rows.has(`${name}/status`));
    for (const part of strategy.subresources?.keys() ?? []) expect(rows.has(`${name}/${part}`)).toBe(true);
  });

  it.each(named)('hashes the storage version of %s', (_, definition) => {
    const { group, version: served } = definition.storedAs ?? definition;
    const version = olderStorage.get(`${group}/${definition.kind}`) ?? served;
    const digest = createHash('sha256').update(`${group}/${version}/${definition.kind}`).digest();
    expect(definition.storageVersionHash).toBe(digest.subarray(0, 8).toString('base64'));
  });
});

const runs = 40;
const depth = 7;

describe('whatever a client sends', () => {
  it.each(named)('%s is decided, not crashed on', (_, definition) => {
    const { strategy } = definition;
    const schema = builtinSchema(definition.schema);
    const labels = Object.keys(strategy.fields?.({ metadata: {} }) ?? {});
    const body = arbitraryOf(schema, depth).map((value) => ({
      ...(isRecord(value) ? value : {}),
      apiVersion: definition.group === '' ? 'v1' : `${definition.group}/${definition.version}`,
      kind: definition.kind,
      metadata: { name: 'a' },
    }));
    fc.assert(
      fc.property(body, body, (first, second) => {
        const once = read(definition, first);
        const text = encodeObject(schema, once);
        strategy.setDefaults(once);
        expect(encodeObject(schema, once)).toBe(text);
        expect(Object.keys(strategy.fields?.(once) ?? {})).toEqual(labels);
        try {
          const old = create(definition, first).stored;
          update(definition, old, second);
          if (strategy.status !== undefined) update(definition, old, second, 'status');
          for (const part of strategy.subresources?.keys() ?? []) update(definition, old, second, part);
          expect(strategy.gracePeriodSeconds?.(old, undefined) ?? 0).toBeGreaterThanOrEqual(0);
          strategy.beginDelete?.(old, contextOf()).rollback();
        } catch (error) {
          if (!(error instanceof StatusError)) throw error;
        }
      }),
      { numRuns: runs },
    );
  });
});
