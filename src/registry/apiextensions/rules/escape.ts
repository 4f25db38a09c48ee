/** Names of properties as CEL's identifiers (`apiserver/pkg/cel/escaping.go`). */

const keywords = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
const escapes: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);
const unescapes: ReadonlyMap<string, string> = new Map(
  [...escapes].map(([plain, escaped]) => [escaped, plain]),
);

/** The identifier of a property; undefined for one that has none. */
export function escapeName(name: string): string | undefined {
  if (keywords.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replace(/__|[./-]/g, (part) => escapes.get(part) ?? part);
}

/** The property of an identifier; undefined when it is not a valid escape. Keywords are allowed after a dot. */
export function unescapeName(identifier: string): string | undefined {
  if (keywords.has(identifier)) return identifier;
  const keyword = /^__(.+)__$/.exec(identifier)?.[1];
  if (keyword !== undefined && keywords.has(keyword)) return keyword;
  const name = identifier.replace(
    /__(?:underscores|dot|dash|slash)__/g,
    (part) => unescapes.get(part) ?? part,
  );
  return escapeName(name) === identifier ? name : undefined;
}
