import { parseAllDocuments, stringify } from 'yaml';
import { isRecord } from '../objects/json.ts';
import { type KubeObject, isKubeObject } from '../objects/meta.ts';
import { kubernetesYaml } from '../objects/formats/yaml.ts';

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

/**
 * The objects of all documents, those of Lists among them. Empty documents are none.
 *
 * @throws {Error} where {@link readYaml} does, and for what is no object.
 */
export function objectsInYaml(text: string): KubeObject[] {
  return readYaml(text).flatMap((value) => {
    if (value === null || value === undefined) return [];
    const items: unknown[] =
      isRecord(value) && value['kind'] === 'List' && Array.isArray(value['items']) ? value['items'] : [value];
    return items.map((item) => {
      if (!isKubeObject(item)) throw new Error('a document is not a Kubernetes object');
      return item;
    });
  });
}

/** A value as kubectl prints it with `-o yaml`, for people to read. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0, indentSeq: false });
}
