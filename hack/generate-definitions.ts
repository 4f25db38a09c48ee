/**
 * Writes the definitions of deploy/crds as lists in JSON, which `up` applies at every start: it must not load a YAML
 * parser (10 MiB) for that. test/unit/commands/definitions.test.ts fails when they differ.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';

const folder = new URL('../deploy/crds/', import.meta.url);
const commands = new URL('../src/commands/', import.meta.url);

/** The CustomResourceDefinitions of deploy/crds itself whose files are chosen, by the names of their files. */
function definitions(chosen: (file: string) => boolean): readonly unknown[] {
  return readdirSync(folder)
    .filter((file) => file.includes('_') && chosen(file))
    .toSorted()
    .map((file): unknown => parse(readFileSync(new URL(file, folder), 'utf8')));
}

function write(path: string, list: readonly unknown[]): void {
  writeFileSync(new URL(path, commands), `${JSON.stringify(list)}\n`);
}

if (import.meta.main) {
  const isOurs = (file: string): boolean => file.startsWith('servicenet.dev_');
  write('definitions.generated.json', definitions(isOurs));
  write(
    'local-cluster/openshift-definitions.generated.json',
    definitions((file) => !isOurs(file)),
  );
}
