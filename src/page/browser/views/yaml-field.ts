/**
 * The lines of a field in a YAML of block style, as the page's server writes it.
 *
 * @param field `spec.ingress[0].from[1]`.
 * @returns "" where the field is not there.
 */
export function linesOfField(yaml: string, field: string): string {
  let found: readonly string[] = yaml.split('\n').filter((line) => line.trim() !== '');
  // The lines whose least indented ones are members or items.
  let body = found;
  for (const [, key = '', index] of field.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    const depth = indentOf(body[0] ?? '');
    const begins = (line: string): boolean =>
      indentOf(line) === depth && line.trimStart().startsWith(index === undefined ? `${key}:` : '-');
    const starts = body.flatMap((line, at) => (begins(line) ? [at] : []));
    const start = starts[Number(index ?? 0)];
    if (start === undefined) return '';
    found = blockFrom(body, start);
    body =
      index === undefined
        ? found.slice(1)
        : found.map((line, at) => (at === 0 ? line.replace('-', ' ') : line));
  }
  const least = found.reduce((low, line) => Math.min(low, indentOf(line)), Infinity);
  return found.map((line) => line.slice(least)).join('\n');
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** A line and those that belong to it: deeper ones, and below a key also the items of a list at its depth. */
function blockFrom(lines: readonly string[], start: number): readonly string[] {
  const depth = indentOf(lines[start] ?? '');
  const isKey = !(lines[start] ?? '').trimStart().startsWith('-');
  const isOther = (line: string): boolean =>
    indentOf(line) < depth || (indentOf(line) === depth && !(isKey && line.trimStart().startsWith('-')));
  const length = lines.slice(start + 1).findIndex(isOther);
  return length === -1 ? lines.slice(start) : lines.slice(start, start + 1 + length);
}

/** An object as a user writes it: without what the server has added. @param yaml of an object, as the server prints it. */
export function withoutServerFields(yaml: string): string {
  let top = '';
  const kept = yaml.split('\n').filter((line) => {
    if (/^\w/.test(line)) top = line;
    if (top.startsWith('status:')) return false;
    const isMetadata = top.startsWith('metadata:');
    return !(isMetadata && /^ {2}(creationTimestamp|generation|resourceVersion|uid):/.test(line));
  });
  return `${kept.join('\n').trimEnd()}\n`;
}
