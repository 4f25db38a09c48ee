import { yaml } from '../yaml.ts';
import type { MediaType } from './media-types.ts';

/** Writes a JSON value: JSON in one line with a newline behind it, as Go's encoder does, or YAML. */
export function encode(value: unknown, mediaType: MediaType): string {
  if (mediaType === 'application/json') return `${JSON.stringify(value)}\n`;
  // sigs.k8s.io/yaml: members sorted, lists not indented, nothing folded; 1.1 so that "yes" and "on" are quoted
  return yaml().stringify(value, {
    version: '1.1',
    sortMapEntries: true,
    indentSeq: false,
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}
