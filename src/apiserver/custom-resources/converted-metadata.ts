/** What a conversion may change of an object (apiextensions `apiserver/conversion/webhook_converter.go`). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import { textAt } from '../../objects/read.ts';
import { aggregateText } from '../../registry/validation/field-errors.ts';
import { validateAnnotations } from '../../registry/generic/metadata.ts';
import { validateLabels } from '../../registry/validation/label-selector.ts';

/** @throws {Error} when the converted object is another one than the original (`validateConvertedObject`). */
export function checkSameObject(original: KubeObject, converted: JsonRecord): void {
  const { name = '', namespace = '', uid = '' } = original.metadata;
  const requireSame = (field: string, before: string, after: string): void => {
    if (before !== after) throw new Error(`must have the same ${field}: ${before} != ${after}`);
  };
  requireSame('kind', original.kind ?? '', textAt(converted, 'kind'));
  requireSame('name', name, textAt(converted, 'metadata', 'name'));
  requireSame('namespace', namespace, textAt(converted, 'metadata', 'namespace'));
  requireSame('UID', uid, textAt(converted, 'metadata', 'uid'));
}

/**
 * The original metadata with the labels and annotations of the converted object (`restoreObjectMeta`).
 *
 * @throws {Error} when these are missing or invalid.
 */
export function convertedMetadata(original: ObjectMeta, converted: JsonRecord): ObjectMeta {
  if (!Object.hasOwn(converted, 'metadata')) throw new Error('missing metadata in converted object');
  const { metadata: convertedMeta } = converted;
  if (!isRecord(convertedMeta))
    throw new Error(`invalid metadata of type ${goType(convertedMeta)} in converted object`);
  const { labels: _labels, annotations: _annotations, ...rest } = structuredClone(original);
  const metadata: ObjectMeta = rest;
  const labels = textsOf(convertedMeta, 'labels', original.labels, (texts) =>
    validateLabels(texts, 'metadata.labels'),
  );
  if (labels !== undefined) metadata.labels = labels;
  const annotations = textsOf(convertedMeta, 'annotations', original.annotations, (texts) =>
    validateAnnotations(texts, 'metadata.annotation'),
  );
  if (annotations !== undefined) metadata.annotations = annotations;
  return metadata;
}

/** A map of strings, validated if it has changed; undefined for an empty one. @throws {Error} */
function textsOf(
  metadata: JsonRecord,
  member: 'labels' | 'annotations',
  before: Readonly<Record<string, string>> = {},
  validate: (texts: Record<string, string>) => Parameters<typeof aggregateText>[0],
): Record<string, string> | undefined {
  const value = metadata[member];
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    throw new Error(`invalid metadata.${member} of type ${goType(value)} in converted object`);
  }
  const texts = new Map<string, string>();
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== 'string') {
      const type = goType(text);
      throw new Error(`metadata.${member}[${name}] must be a string, but is ${type} in converted object`);
    }
    texts.set(name, text);
  }
  const found = Object.fromEntries(texts);
  const sameNumber = texts.size === Object.keys(before).length;
  const same = sameNumber && [...texts].every(([name, text]) => before[name] === text);
  const errors = same ? [] : validate(found);
  if (errors.length > 0) throw new Error(aggregateText(errors));
  return texts.size === 0 ? undefined : found;
}

/** The Go type of a JSON value, as `%T` prints it. */
function goType(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'map[string]interface {}';
}
