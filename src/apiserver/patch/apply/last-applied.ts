/**
 * How `kubectl apply --server-side` takes over from client-side apply (apimachinery
 * `managedfields/internal/lastappliedmanager.go`, `lastappliedupdater.go`).
 */
import { isRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { parseJson } from '../../schema/json/parse-json.ts';
import { JsonSyntaxError } from '../../schema/json/go-json.ts';
import { encodeSorted } from '../../schema/encode.ts';
import { withoutRawNumbers } from '../../schema/decode-leaf.ts';
import type { StructSchema } from '../../schema/schema.ts';
import { changedFields, fieldsOf, removedFields } from './compare.ts';
import { fieldSetDifference, emptySet, type FieldSet } from './field-set.ts';
import { PathElementError } from './path-element.ts';

/** The manager of both kubectl's applies. */
export const kubectl = 'kubectl';

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** Bytes that all annotations of an object may have together. */
const maxAnnotationBytes = 256 * 1024;

/**
 * Fields that a client-side apply set and that are unchanged since: `kubectl` may take them over from their recorded
 * owner.
 */
export function fieldsOfLastApplied(schema: StructSchema, live: KubeObject): FieldSet {
  const text = live.metadata.annotations?.[annotation];
  if (text === undefined) return emptySet;
  try {
    const config = withoutRawNumbers(parseJson(Buffer.from(text)).value);
    const changed = fieldSetDifference(fieldsOf(schema, config), changedFields(schema, config, live));
    return fieldSetDifference(changed, removedFields(schema, config, live));
  } catch (error) {
    if (error instanceof JsonSyntaxError || error instanceof PathElementError) return emptySet;
    throw error;
  }
}

/**
 * The object with its last-applied annotation updated, if it has one, so that client-side applies keep working. The
 * manager does not own the annotation.
 */
export function withLastApplied(live: KubeObject, config: unknown): KubeObject {
  const { annotations } = live.metadata;
  if (annotations?.[annotation] === undefined) return live;
  const { [annotation]: _before, ...others } = annotations;
  const text = `${encodeSorted(withoutAnnotation(config))}\n`;
  const size = Object.entries(others).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  const fits = size + Buffer.byteLength(text) + annotation.length <= maxAnnotationBytes;
  return {
    ...live,
    metadata: { ...live.metadata, annotations: fits ? { ...others, [annotation]: text } : others },
  };
}

function withoutAnnotation(config: unknown): unknown {
  if (!isRecord(config) || !isRecord(config['metadata']) || !isRecord(config['metadata']['annotations'])) {
    return config;
  }
  const { [annotation]: _before, ...others } = config['metadata']['annotations'];
  return { ...config, metadata: { ...config['metadata'], annotations: others } };
}
