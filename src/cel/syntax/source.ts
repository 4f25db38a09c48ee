/** An error of an expression. */
export interface Issue {
  /** The offset in the source. */
  readonly at: number;
  readonly message: string;
}

/** The limit of reported errors, as in cel-go. */
export const maxIssues = 100;

/**
 * The issues in cel-go's format (`common/error.go`): `ERROR: <input>:1:5: undefined field 'x'`, and the line with a caret
 * below it.
 */
export function describeIssues(source: string, issues: readonly Issue[]): string {
  const lines = source.split('\n');
  const listed = issues.slice(0, maxIssues).sort((a, b) => a.at - b.at);
  const texts = listed.map(({ at, message }) => {
    const before = source.slice(0, at).split('\n');
    const line = lines[before.length - 1] ?? '';
    const column = Array.from(before.at(-1) ?? '').length;
    const place = `<input>:${before.length}:${column + 1}`;
    return `ERROR: ${place}: ${message}\n | ${line.replaceAll('\t', ' ')}\n | ${'.'.repeat(column)}^`;
  });
  if (issues.length > maxIssues) texts.push(`${issues.length - maxIssues} more errors were truncated`);
  return texts.join('\n');
}

/** The message of cel-go's parser for a word after a dot that is not a field name. */
export function noFieldName(word: string): string {
  return ['true', 'false', 'null'].includes(word)
    ? `Syntax error: mismatched input '${word}' expecting IDENTIFIER`
    : `Syntax error: no viable alternative at input '.${word}'`;
}

/** A syntax error of an expression. */
export class SyntaxIssue extends Error {
  override readonly name = 'SyntaxIssue';
  readonly at: number;

  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** All syntax errors of an expression. */
export class SyntaxErrors extends Error {
  override readonly name = 'SyntaxErrors';
  /** In source order. */
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    super(issues[0]?.message ?? '');
    this.issues = [...issues].sort((a, b) => a.at - b.at);
  }
}
