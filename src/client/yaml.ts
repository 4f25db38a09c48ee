import { parseAllDocuments } from 'yaml';
import { kubernetesYaml } from '../objects/yaml.ts';

/**
 * The values of all documents of a file, as kubectl reads it; that of an empty document is null.
 *
 * @throws {Error} naming line and column, for a text that is not YAML.
 * @throws {ReferenceError} when aliases repeat too much.
 */
export function readYaml(text: string): unknown[] {
  const values: unknown[] = [];
  for (const document of parseAllDocuments(text, kubernetesYaml)) {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    values.push(document.toJS({ maxAliasCount: 100 }));
  }
  return values;
}
