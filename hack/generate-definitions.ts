/**
 * Writes src/commands/definitions.generated.json, a list, from deploy/crds: `up` defines these kinds at every start, and
 * must not load a YAML parser (10 MiB) for that. test/unit/commands/definitions.test.ts fails when the two differ.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';

const folder = new URL('../deploy/crds/', import.meta.url);
const output = new URL('../src/commands/definitions.generated.json', import.meta.url);

/** The CustomResourceDefinitions of deploy/crds, by the names of their files. */
function definitions(): readonly unknown[] {
  return readdirSync(folder)
    .filter((file) => file.startsWith('servicenet.dev_'))
    .toSorted()
    .map((file): unknown => parse(readFileSync(new URL(file, folder), 'utf8')));
}

if (import.meta.main) writeFileSync(output, `${JSON.stringify(definitions())}\n`);
