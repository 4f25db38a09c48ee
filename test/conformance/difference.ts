import { isRecord, jsonEqual } from '../../src/objects/json.ts';

/** One place where an answer is not as recorded. */
export interface Difference {
  /** Such as `body.spec.ports[0].nodePort`. */
  readonly path: string;
  /** What was recorded and what came, as JSON, or `(nothing)`. */
  readonly expected: string;
  readonly got: string;
}

const nothingText = '(nothing)';

/**
 * Every place where two JSON values differ, in reading order. Lists are compared by index, unless taking some items
 * out of one makes them equal: then those are what differs.
 *
 * @param order whether the order of members counts too.
 */
export function differences(expected: unknown, got: unknown, path: string, order = false): Difference[] {
  if (Array.isArray(expected) && Array.isArray(got)) return listDifferences(expected, got, path, order);
  if (isRecord(expected) && isRecord(got)) return recordDifferences(expected, got, path, order);
  if (jsonEqual(expected, got)) return [];
  if (typeof expected === 'string' && typeof got === 'string')
    return [{ path, ...textDifference(expected, got) }];
  return [{ path, expected: shown(expected), got: shown(got) }];
}

function recordDifferences(
  expected: Record<string, unknown>,
  got: Record<string, unknown>,
  path: string,
  order: boolean,
): Difference[] {
  const found: Difference[] = [];
  for (const [key, value] of Object.entries(expected)) {
    found.push(
      ...differences(value, Object.hasOwn(got, key) ? got[key] : undefined, member(path, key), order),
    );
  }
  for (const [key, value] of Object.entries(got)) {
    if (!Object.hasOwn(expected, key)) found.push(...differences(undefined, value, member(path, key), order));
  }
  if (order && found.length === 0 && Object.keys(expected).join() !== Object.keys(got).join()) {
    const keys = (record: Record<string, unknown>): string => Object.keys(record).join(' ');
    found.push({ path: `${path} (order)`, expected: keys(expected), got: keys(got) });
  }
  return found;
}

function listDifferences(
  expected: readonly unknown[],
  got: readonly unknown[],
  path: string,
  order: boolean,
): Difference[] {
  if (expected.length !== got.length) {
    const missing = withoutFirst(expected, got);
    const extra = withoutFirst(got, expected);
    // One list is the other with something taken out: name what.
    if (missing.length === 0 || extra.length === 0) {
      return [
        ...missing.map(({ at, item }) => ({
          path: `${path}[${at}]`,
          expected: shown(item),
          got: nothingText,
        })),
        ...extra.map(({ at, item }) => ({ path: `${path}[${at}]`, expected: nothingText, got: shown(item) })),
      ];
    }
  }
  const found: Difference[] = [];
  for (let i = 0; i < Math.max(expected.length, got.length); i++) {
    found.push(...differences(expected[i], got[i], `${path}[${i}]`, order));
  }
  return found;
}

/** The items of `list` that `other` does not have in the same order. */
function withoutFirst(list: readonly unknown[], other: readonly unknown[]): { at: number; item: unknown }[] {
  const left: { at: number; item: unknown }[] = [];
  let from = 0;
  list.forEach((item, at) => {
    const match = other.findIndex((candidate, index) => index >= from && jsonEqual(item, candidate));
    if (match < 0) left.push({ at, item });
    else from = match + 1;
  });
  return left;
}

/** Long texts are cut down to where they part. */
function textDifference(expected: string, got: string): { expected: string; got: string } {
  if (expected.length < 160 && got.length < 160) return { expected: shown(expected), got: shown(got) };
  let start = 0;
  while (start < expected.length && start < got.length && expected[start] === got[start]) start++;
  const cut = (text: string): string => {
    const from = Math.max(0, start - 40);
    const part = text.slice(from, start + 160);
    return `${from > 0 ? '…' : ''}${JSON.stringify(part)}${start + 160 < text.length ? '…' : ''}`;
  };
  return { expected: cut(expected), got: cut(got) };
}

function shown(value: unknown): string {
  if (value === undefined) return nothingText;
  const text = JSON.stringify(value);
  return text.length <= 400 ? text : `${text.slice(0, 400)}…`;
}

function member(path: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
