import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import definitions from '../../../src/commands/definitions.generated.json' with { type: 'json' };

test('the definitions that `up` brings are those in deploy/crds', () => {
  const folder = new URL('../../../deploy/crds/', import.meta.url);
  const shipped = readdirSync(folder)
    .filter((file) => file.startsWith('servicenet.dev_'))
    .map((file): unknown => parse(readFileSync(new URL(file, folder), 'utf8')));
  expect(definitions, 'run `node hack/generate-definitions.ts`').toEqual(shipped);
});
