/** What is wrong with an expression, as cel-go tells it (`common/error.go`). */
export interface Issue {
  /** Offset in the text. */
  readonly at: number;
  readonly message: string;
}

/** cel-go reports no more. */
export const maxIssues = 100;

/** The issues with place and line, e.g. `ERROR: <input>:1:5: undefined field 'x'` and the line with a caret below. */
export function describeIssues(source: string, issues: readonly Issue[]): string {
  const lines = source.split('\n');
  const told = issues.slice(0, maxIssues).sort((a, b) => a.at - b.at);
  const texts = told.map(({ at, message }) => {
    const before = source.slice(0, at).split('\n');
    const line = lines[before.length - 1] ?? '';
    const column = Array.from(before.at(-1) ?? '').length;
    const place = `<input>:${before.length}:${column + 1}`;
    return `ERROR: ${place}: ${message}\n | ${line.replaceAll('\t', ' ')}\n | ${'.'.repeat(column)}^`;
  });
  if (issues.length > maxIssues) texts.push(`${issues.length - maxIssues} more errors were truncated`);
  return texts.join('\n');
}

/** An expression that cannot be read. */
/** What is wrong with a word behind a dot, in the words of cel-go's parser. */
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

/** All that is wrong with the text of an expression. */
export class SyntaxErrors extends Error {
  override readonly name = 'SyntaxErrors';
  /** In the order of the text. */
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    super(issues[0]?.message ?? '');
    this.issues = [...issues].sort((a, b) => a.at - b.at);
  }
}
