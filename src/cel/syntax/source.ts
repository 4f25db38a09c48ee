/** Errors of an expression in cel-go's format (`common/error.go`). */
export interface Issue {
  /** Offset in the text. */
  readonly at: number;
  readonly message: string;
}

/** cel-go reports no more errors than this. */
export const maxIssues = 100;

/** The issues with their places, e.g. `ERROR: <input>:1:5: undefined field 'x'` and the line with a caret below. */
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

/** An expression that cannot be parsed. */
/** The error of a word after a dot, with the text of cel-go's parser. */
export function noFieldName(word: string): string {
  return ['true', 'false', 'null'].includes(word)
    ? `Syntax error: mismatched input '${word}' expecting IDENTIFIER`
    : `Syntax error: no viable alternative at input '.${word}'`;
}

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
