import { isRecord } from '../../objects/json.ts';
import { writeProtobuf } from '../schema/protobuf/write-protobuf.ts';
import { writeYaml } from '../schema/yaml/write-yaml.ts';
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
  return writeYaml(value);
}
