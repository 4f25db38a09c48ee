import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import own from '../../../src/commands/definitions.generated.json' with { type: 'json' };
import openshift from '../../../src/commands/local-cluster/openshift-definitions.generated.json' with { type: 'json' };

test('the definitions that `up` brings are those in deploy/crds', () => {
  const folder = new URL('../../../deploy/crds/', import.meta.url);
  const shipped = readdirSync(folder)
    .filter((file) => file.includes('_'))
    .map((file): unknown => parse(readFileSync(new URL(file, folder), 'utf8')));
  const advice = 'run `node hack/generate-definitions.ts`';
  expect(new Set<unknown>([...openshift, ...own]), advice).toEqual(new Set(shipped));
  // Operators take a cluster with OpenShift's groups for OpenShift.
  expect(own.every(({ spec }) => spec.group === 'servicenet.dev')).toBe(true);
});
