import { isRecord } from '../../src/objects/json.ts';

/** Lists that controllers write in no fixed order. */
const unordered = new Set(['items', 'subsets', 'addresses', 'notReadyAddresses', 'ports', 'endpoints']);

/** A masked body of a settled object in the form in which two of them can be compared: lists sorted, no generation. */
export function settledForm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => settledForm(item));
  if (!isRecord(value)) return value;
  const form: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (key === 'metadata' && isRecord(item)) {
      const { generation: _dropped, ...rest } = item;
      form.push([key, settledForm(rest)]);
    } else if (unordered.has(key) && Array.isArray(item)) {
      form.push([
        key,
        item.map((member) => settledForm(member)).sort((a, b) => (sortText(a) < sortText(b) ? -1 : 1)),
      ]);
    } else form.push([key, settledForm(item)]);
  }
  return Object.fromEntries(form);
}

/** JSON with sorted keys: the order of members must not decide the order of items. */
function sortText(value: unknown): string {
  return JSON.stringify([value], (_key, item: unknown) =>
    isRecord(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
}
