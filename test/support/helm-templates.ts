import { at } from '../../src/objects/read.ts';

const condition = /^\{\{- if (\S+) \}\}\n([\s\S]*?)\{\{- end \}\}$/m;

/**
 * The part of Helm's template language that the chart uses: `if` around a whole document, members of `.Values` and
 * `.Release`, `toJson`, `printf` with `%s`, and `quote`.
 *
 * @throws {Error} for anything else.
 */
export function renderTemplate(template: string, scope: object): string {
  const chosen = template.replace(condition, (_, path: string, body: string) =>
    isTrue(valueOf(path, scope)) ? body : '',
  );
  return chosen.replaceAll(/\{\{ ([^}]*) \}\}/g, (_, expression: string) => {
    const [call = '', ...pipes] = expression.split(' | ');
    return pipes.reduce(
      (value, pipe) => {
        if (pipe !== 'quote') throw new Error(`unknown function ${pipe}`);
        return JSON.stringify(value);
      },
      evaluate(call, scope),
    );
  });
}

function evaluate(call: string, scope: object): string {
  const words = call.match(/"[^"]*"|\S+/g) ?? [];
  const [name = '', ...operands] = words;
  if (name.startsWith('.') && operands.length === 0) return String(valueOf(name, scope));
  if (name === 'toJson') return JSON.stringify(valueOf(operands[0] ?? '', scope));
  if (name === 'printf') {
    const values = operands.slice(1).map((operand) => String(valueOf(operand, scope)));
    return (operands[0] ?? '').slice(1, -1).replaceAll('%s', () => values.shift() ?? '%!s(MISSING)');
  }
  throw new Error(`unknown expression ${call}`);
}

function valueOf(path: string, scope: object): unknown {
  const value = at(scope, ...path.split('.').slice(1));
  if (!path.startsWith('.') || value === undefined) throw new Error(`no value at ${path}`);
  return value;
}

/** As in Go templates: false, 0, "" and nil are not. */
function isTrue(value: unknown): boolean {
  return value !== false && value !== 0 && value !== '' && value !== null;
}
