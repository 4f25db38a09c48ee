import { at } from '../../src/objects/read.ts';

/** Blocks that are in no other block, but for an `if` around a whole document. */
const document = /^\{\{- if (\S+) \}\}\n([\s\S]*)\{\{- end \}\}\n$/m;
const block = /\s*\{\{- (with|range) (\S+) \}\}([\s\S]*?)\s*\{\{- end \}\}/g;

/**
 * The part of Helm's template language that the chart uses: `if` around a whole document, `with` and `range`, members
 * of `.Values` and `.Release`, `toJson`, `ternary` of texts, `printf` with `%s`, and `quote`.
 *
 * @throws {Error} for anything else.
 */
export function renderTemplate(template: string, scope: object): string {
  const chosen = template.replace(document, (_, path: string, body: string) =>
    isTrue(valueOf(path, scope)) ? body : '',
  );
  const unfolded = chosen.replaceAll(block, (_, kind: string, path: string, body: string) => {
    const value = valueOf(path, scope);
    const items = kind === 'range' && Array.isArray(value) ? value : isTrue(value) ? [value] : [];
    return items.map((dot: unknown) => body.replaceAll('{{ toJson . }}', () => JSON.stringify(dot))).join('');
  });
  return unfolded.replaceAll(/\{\{ ([^}]*) \}\}/g, (_, expression: string) => {
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
  if (name === 'ternary') {
    const [yes = '', no = '', test = ''] = operands;
    return (isTrue(valueOf(test, scope)) ? yes : no).slice(1, -1);
  }
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

/** As in Go templates: false, 0, "", nil and what is empty are not. */
function isTrue(value: unknown): boolean {
  if (typeof value === 'object') return value !== null && Object.keys(value).length > 0;
  return value !== false && value !== 0 && value !== '';
}
