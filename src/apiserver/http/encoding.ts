import { isRecord } from '../../objects/json.ts';
import { writeProtobuf } from '../schema/write-protobuf.ts';
import { withoutDot, yaml } from '../yaml.ts';
import type { MediaType } from './media-types.ts';

/**
 * Writes a JSON value: JSON in one line with a newline behind it, as Go's encoder does, YAML, or protobuf, for which
 * it must be an object with its kind.
 *
 * @throws {StatusError} 406 for a kind that has no protobuf.
 */
export function encode(value: unknown, mediaType: MediaType): string | Buffer {
  if (mediaType === 'application/json') return `${JSON.stringify(value)}\n`;
  if (mediaType === 'application/vnd.kubernetes.protobuf') return writeProtobuf(isRecord(value) ? value : {});
  // sigs.k8s.io/yaml: members sorted, lists not indented, nothing folded; 1.1 so that "yes" and "on" are quoted
  return yaml().stringify(value, {
    version: '1.1',
    customTags: (tags) => tags.map(withoutDot),
    sortMapEntries: true,
    indentSeq: false,
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}
