import type { Schema } from '../../schema/schema.ts';
import { listItemsOf, membersOf, memberSchema } from './typed-value.ts';

/**
 * Where a configuration sets a list, map or object that is one whole: `.spec.selector`. Patches of policies may set
 * none, since they would take away what they do not name (apiserver `policy/mutating/patch/smd.go` findAtomics).
 */
export function findAtomics(schema: Schema, value: unknown, path = ''): string[] {
  if (schema.type === 'list') {
    if (!Array.isArray(value)) return [];
    const own = schema.listType === 'atomic' ? [path] : [];
    return [
      ...own,
      ...listItemsOf(value).flatMap((item, i) => findAtomics(schema.items, item, `${path}[${i}]`)),
    ];
  }
  if ((schema.type !== 'struct' && schema.type !== 'map') || typeof value !== 'object' || value === null) {
    return [];
  }
  const own = schema.atomic ? [path] : [];
  const members = Object.entries(membersOf(value)).flatMap(([name, member]) => {
    const type = schema.type === 'struct' ? memberSchema(schema, name) : undefined;
    return type === undefined ? [] : findAtomics(type, member, `${path}.${name}`);
  });
  return [...own, ...members];
}
