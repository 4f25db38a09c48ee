import { at, recordAt } from '../../src/objects/json.ts';

/** Blocks that are in no other block, but for an `if` around a whole document, and others in an `if`. */
const document = /^\{\{- if ([^}]+) \}\}\n([\s\S]*)\{\{- end \}\}\n$/m;
const branch = /\s*\{\{- if ([^}]+) \}\}([\s\S]*?)(?:\s*\{\{- else \}\}([\s\S]*?))?\s*\{\{- end \}\}/g;
const entries = /\s*\{\{- range \$key, \$value := (\S+) \}\}([\s\S]*?)\s*\{\{- end \}\}/g;
const block = /\s*\{\{- (with|range) (\S+) \}\}([\s\S]*?)\s*\{\{- end \}\}/g;

/** Bodies of `define` by name. */
export type DefinedTemplates = ReadonlyMap<string, string>;

/** The templates that a file of a chart defines. */
export function definedTemplates(text: string): DefinedTemplates {
  const definitions = text.matchAll(/\{\{- define "([^"]+)" -\}\}([\s\S]*?)\{\{- end \}\}/g);
  return new Map([...definitions].map(([, name = '', body = '']) => [name, body]));
}

/**
 * The part of Helm's template language that the chart uses: `if` around a whole document, `if` with `else`, `with` and
 * `range`, `or` of members, members of `.Values` and `.Release`, `toJson`, `ternary` of texts, `printf` with `%s`, `default`, `include`, `fail`, and `quote`.
 *
 * @throws {Error} for anything else.
 */
export function renderTemplate(
  template: string,
  scope: object,
  defined: DefinedTemplates = new Map(),
): string {
  const chosen = template.replace(document, (_, test: string, body: string) =>
    isChosen(test, scope) ? body : '',
  );
  const listed = chosen.replaceAll(entries, (_, path: string, body: string) =>
    Object.entries(recordAt(valueOf(path, scope)))
      .map(([key, value]) =>
        body
          .replaceAll('{{ $key }}', () => key)
          .replaceAll('{{ toJson $value }}', () => JSON.stringify(value)),
      )
      .join(''),
  );
  const unfolded = listed.replaceAll(block, (_, kind: string, path: string, body: string) => {
    // The value of a former version may be there.
    const value = kind === 'with' ? at(scope, ...path.split('.').slice(1)) : valueOf(path, scope);
    const items = kind === 'range' && Array.isArray(value) ? value : isTrue(value) ? [value] : [];
    return items.map((dot: unknown) => body.replaceAll('{{ toJson . }}', () => JSON.stringify(dot))).join('');
  });
  const decided = unfolded.replaceAll(branch, (_, test: string, yes: string, no: string | undefined) =>
    isChosen(test, scope) ? yes : (no ?? ''),
  );
  return decided.replaceAll(/\{\{ ([^}]*) \}\}/g, (_, expression: string) => {
    const [call = '', ...pipes] = expression.split(' | ');
    return pipes.reduce(
      (value, pipe) => {
        if (pipe !== 'quote') throw new Error(`unknown function ${pipe}`);
        return JSON.stringify(value);
      },
      evaluate(call, scope, defined),
    );
  });
}

function isChosen(test: string, scope: object): boolean {
  const paths = test.startsWith('or ') ? test.split(' ').slice(1) : [test];
  return paths.some((path) => isTrue(valueOf(path, scope)));
}

function evaluate(call: string, scope: object, defined: DefinedTemplates): string {
  const inner = /\(([^()]*)\)/.exec(call);
  if (inner !== null) {
    const value = JSON.stringify(evaluate(inner[1] ?? '', scope, defined));
    return evaluate(
      call.replace(inner[0], () => value),
      scope,
      defined,
    );
  }
  const words = call.match(/"[^"]*"|\S+/g) ?? [];
  const [name = '', ...operands] = words;
  if (name.startsWith('.') && operands.length === 0) return String(valueOf(name, scope));
  if (name === 'toJson') return JSON.stringify(valueOf(operands[0] ?? '', scope));
  if (name === 'ternary') {
    const [yes = '', no = '', test = ''] = operands;
    return (isTrue(valueOf(test, scope)) ? yes : no).slice(1, -1);
  }
  if (name === 'include') {
    const included = defined.get(textOf(operands[0] ?? '', scope));
    if (included === undefined || operands[1] !== '.') throw new Error(`nothing is defined for ${call}`);
    return renderTemplate(included, scope, defined).trim();
  }
  if (name === 'fail') throw new Error(textOf(operands[0] ?? '', scope));
  if (name === 'default') {
    const [otherwise = '', given = ''] = operands.map((operand) => textOf(operand, scope));
    return given === '' ? otherwise : given;
  }
  if (name === 'printf') {
    const values = operands.slice(1).map((operand) => textOf(operand, scope));
    return (operands[0] ?? '').slice(1, -1).replaceAll('%s', () => values.shift() ?? '%!s(MISSING)');
  }
  throw new Error(`unknown expression ${call}`);
}

/** A text in quotes, or the value at a path. */
function textOf(operand: string, scope: object): string {
  return operand.startsWith('"') ? operand.slice(1, -1) : String(valueOf(operand, scope));
}

function valueOf(path: string, scope: object): unknown {
  const value = at(scope, ...path.split('.').slice(1));
  if (!path.startsWith('.') || value === undefined) throw new Error(`no value at ${path}`);
  return value;
}

/** As in Go templates: false, 0, "", nil and what is empty are not. */
function isTrue(value: unknown): boolean {
  if (value === undefined) return false;
  if (typeof value === 'object') return value !== null && Object.keys(value).length > 0;
  return value !== false && value !== 0 && value !== '';
}
