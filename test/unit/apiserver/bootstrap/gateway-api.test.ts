import { expect, test } from 'vitest';
import { bundledObjects, storedTexts } from '../../../../hack/generate-gateway-crds.ts';
import texts from '../../../../src/apiserver/bootstrap/gateway-api.generated.json' with { type: 'json' };
import { registeredSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { encodeObject, encodePlain } from '../../../../src/apiserver/schema/encode.ts';
import { hasMetadata } from '../../../../src/objects/meta.ts';

const advice = 'run `node hack/generate-gateway-crds.ts --stored`';

function objectOf(text: string) {
  const object: unknown = JSON.parse(text);
  if (!hasMetadata(object)) throw new Error('no object');
  return object;
}

test('what `up` stores of Gateway API is what a server makes of deploy/crds/gateway-api, which it validates', async () => {
  const bundled = bundledObjects();
  expect(bundled.map(({ kind }) => kind).filter((kind) => kind === 'CustomResourceDefinition')).toHaveLength(
    10,
  );
  expect(texts.map(objectOf), advice).toEqual((await storedTexts(bundled)).map(objectOf));
});

test('it is in the order in which objects are stored', () => {
  for (const text of texts) {
    const object = objectOf(text);
    const schema = registeredSchema(object.apiVersion ?? '', object.kind ?? '');
    if (schema === undefined) throw new Error(`${object.kind ?? ''} has no schema`);
    expect(encodePlain(object), advice).toBe(encodeObject(schema, object));
  }
});

test('all of it is of one version and channel, approved, and without descriptions', () => {
  const annotations = texts.map((text) => objectOf(text).metadata.annotations ?? {});
  const versions = annotations.map((each) => each['gateway.networking.k8s.io/bundle-version']);
  expect(new Set(versions).size).toBe(1);
  expect(versions[0]).toMatch(/^v1\.\d+\.\d+$/);
  expect(new Set(annotations.map((each) => each['gateway.networking.k8s.io/channel']))).toEqual(
    new Set(['standard']),
  );
  const definitions = texts.filter((text) => text.includes('"kind":"CustomResourceDefinition"'));
  for (const text of definitions) {
    expect(objectOf(text).metadata.annotations?.['api-approved.kubernetes.io']).toMatch(/^https:/);
    expect(text).not.toContain('"description":"');
  }
});
