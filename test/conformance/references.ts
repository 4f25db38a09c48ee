import { isRecord } from '../../src/objects/json.ts';

/** What `${…}` in a request stands for: `ns`, and the answers that earlier steps kept by `as`. */
export type References = ReadonlyMap<string, unknown>;

const referencePattern = /\$\{([^{}]+)\}/g;

/** A text with every `${name.path.0.x}` replaced; what is not known becomes `undefined`, and the server will say so. */
export function resolveText(text: string, references: References): string {
  return text.replace(referencePattern, (_whole, path: string) => {
    const value = lookUp(path, references);
    if (value === undefined) return 'undefined';
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
}

/** A JSON value with references replaced, in keys too. A text that is nothing but a reference becomes the value itself. */
export function resolveValue(value: unknown, references: References): unknown {
  if (typeof value === 'string') {
    const whole = /^\$\{([^{}]+)\}$/.exec(value)?.[1];
    return whole === undefined ? resolveText(value, references) : lookUp(whole, references);
  }
  if (Array.isArray(value)) return value.map((item) => resolveValue(item, references));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      resolveText(key, references),
      resolveValue(item, references),
    ]),
  );
}

/** `name.path.0.x`: the parts of an object by key, of a list by index. */
function lookUp(path: string, references: References): unknown {
  const [name = '', ...rest] = path.split('.');
  return rest.length === 0 ? references.get(name) : atPath(references.get(name), rest);
}

/**
 * The value at a path of keys, indexes and `length` of lists, undefined where there is none. Keys may contain dots themselves, so the
 * longest joining that exists wins.
 */
export function atPath(value: unknown, path: readonly string[]): unknown {
  if (path.length === 0) return value;
  if (Array.isArray(value)) {
    if (path.length === 1 && path[0] === 'length') return value.length;
    const item: unknown = value[Number(path[0])];
    return atPath(item, path.slice(1));
  }
  if (!isRecord(value)) return undefined;
  for (let taken = path.length; taken > 0; taken--) {
    const key = path.slice(0, taken).join('.');
    if (Object.hasOwn(value, key)) return atPath(value[key], path.slice(taken));
  }
  return undefined;
}
