import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import definition from '../../../src/commands/address-pools.generated.json' with { type: 'json' };

test('the definition that `up` brings is the one in deploy/crds', () => {
  const shipped = new URL('../../../deploy/crds/servicenet.dev_addresspools.yaml', import.meta.url);
  const manifest: unknown = parse(readFileSync(shipped, 'utf8'));
  expect(definition, 'run `node hack/generate-definitions.ts`').toEqual(manifest);
});
