import { type Comprehension, type ComprehensionKind, type Expression, SyntaxIssue } from './ast.ts';

/** Macros with a target, by the form of their arguments: `#` is a variable, `f` the filter, `b` the body. */
const overItems: ReadonlyMap<string, readonly { readonly kind: ComprehensionKind; readonly form: string }[]> =
  new Map([
    ['all', [form('all', '#b'), form('all', '##b')]],
    ['exists', [form('exists', '#b'), form('exists', '##b')]],
    ['exists_one', [form('existsOne', '#b'), form('existsOne', '##b')]],
    ['existsOne', [form('existsOne', '#b'), form('existsOne', '##b')]],
    ['filter', [form('filter', '#b')]],
    ['map', [form('map', '#b'), form('map', '#fb')]],
    ['transformList', [form('transformList', '##b'), form('transformList', '##fb')]],
    ['transformMap', [form('transformMap', '##b'), form('transformMap', '##fb')]],
    ['transformMapEntry', [form('transformMapEntry', '##b'), form('transformMapEntry', '##fb')]],
    ['sortBy', [form('sortBy', '#b')]],
    ['optMap', [form('optMap', '#b')]],
    ['optFlatMap', [form('optFlatMap', '#b')]],
  ]);

function form(kind: ComprehensionKind, text: string): { kind: ComprehensionKind; form: string } {
  return { kind, form: text };
}

/**
 * The expansion of a macro, or the call itself (cel-go `parser/macro.go`, `ext/comprehensions.go`).
 *
 * @param binds whether `cel.bind` is one (`ext/bindings.go`).
 * @throws {SyntaxIssue}
 */
export function expandMacro(
  name: string,
  at: number,
  target: Expression | undefined,
  args: readonly Expression[],
  binds: boolean,
): Expression {
  const [bound, range, body] = args;
  const isBind = binds && name === 'bind' && target?.kind === 'ident' && target.name === 'cel';
  if (isBind && bound !== undefined && range !== undefined && body !== undefined && args.length === 3) {
    if (bound.kind !== 'ident') {
      throw new SyntaxIssue(bound.at, 'cel.bind() variable names must be simple identifiers');
    }
    return {
      kind: 'comprehension',
      at,
      macro: 'bind',
      range,
      variables: [bound.name],
      filter: undefined,
      body,
    };
  }
  if (target === undefined)
    return name === 'has' && args.length === 1 ? has(args) : plain(name, at, target, args);
  const fitting = overItems.get(name)?.find(({ form: shape }) => shape.length === args.length);
  if (fitting === undefined) return plain(name, at, target, args);
  if (fitting.kind === 'sortBy' && !sortable.has(target.kind)) throw new SyntaxIssue(target.at, notSortable);
  const names: string[] = [];
  let filter: Expression | undefined;
  for (const [i, letter] of Array.from(fitting.form).entries()) {
    const arg = args[i];
    if (arg === undefined) break;
    if (letter === '#')
      names.push(isOptional(fitting.kind) ? optionalVariable(arg, name) : variable(arg, names));
    else if (letter === 'f') filter = arg;
  }
  const [first = '', second] = names;
  const last = args.at(-1) ?? target;
  const variables: Comprehension['variables'] = second === undefined ? [first] : [first, second];
  return { kind: 'comprehension', at, macro: fitting.kind, range: target, variables, filter, body: last };
}

const sortable = new Set<Expression['kind']>(['list', 'select', 'ident', 'comprehension', 'call', 'logical']);
const notSortable =
  'sortBy can only be applied to a list, identifier, comprehension, call or select expression';

function plain(
  name: string,
  at: number,
  target: Expression | undefined,
  args: readonly Expression[],
): Expression {
  return { kind: 'call', at, name, target, args };
}

function has([arg]: readonly Expression[]): Expression {
  if (arg?.kind === 'select' && !arg.test) return { ...arg, test: true };
  throw new SyntaxIssue(arg?.at ?? 0, 'invalid argument to has() macro');
}

/** Macros over an optional, without a loop. */
function isOptional(kind: ComprehensionKind): boolean {
  return kind === 'optMap' || kind === 'optFlatMap';
}

function optionalVariable(arg: Expression, macro: string): string {
  if (arg.kind === 'ident') return arg.name;
  throw new SyntaxIssue(arg.at, `${macro}() variable name must be a simple identifier`);
}

function variable(arg: Expression, taken: readonly string[]): string {
  if (arg.kind !== 'ident') throw new SyntaxIssue(arg.at, 'argument must be a simple name');
  if (arg.name === '__result__')
    throw new SyntaxIssue(arg.at, 'iteration variable overwrites accumulator variable');
  if (taken.includes(arg.name)) throw new SyntaxIssue(arg.at, `duplicate variable name: ${arg.name}`);
  return arg.name;
}
