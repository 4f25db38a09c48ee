import type { HTTPPathModifier } from '../../../objects/types/gateway.ts';
import { expressionProblem } from '../expressions.ts';

/** Paths of Ingresses, and what ingress-nginx makes of them, as matches and rewrites of HTTPRoutes. Pure. */

/** A path of an Ingress. */
export interface IngressPath {
  readonly path: string;
  readonly pathType: string;
  /** By `use-regex` or `rewrite-target` paths are expressions. */
  readonly isExpression: boolean;
  readonly rewriteTarget: string | undefined;
}

export interface PathMatch {
  readonly type: 'Exact' | 'PathPrefix' | 'RegularExpression';
  readonly value: string;
}

export interface ImportedPath {
  readonly match: PathMatch;
  readonly rewrite: HTTPPathModifier | undefined;
  /** Why `rewrite-target` was left out. */
  readonly problem: string | undefined;
}

/** What makes a path of ingress-nginx an expression. A dot is none: few paths with one are meant as such. */
const special = /[$()*+?[\]{}|\\^]/;

/** What Gateway API takes in exact paths and prefixes. */
const plain = /^\/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$/;

const maxLength = 1024;

/** Why Gateway API does not take a path that is no expression. */
function plainProblem(path: string): string | undefined {
  if (path.length > maxLength) return `a path has at most ${maxLength} characters`;
  const isPlain = plain.test(path) && !/\/\/|\/\.{1,2}(?:\/|$)|%2f/i.test(path);
  return isPlain ? undefined : 'Gateway API takes no such path';
}

/** Ends of paths with groups that stand for the rest behind a prefix, and how `rewrite-target` ends then. */
const rests = [
  { end: '(/|$)(.*)', target: '/$2' },
  { end: '/?(.*)', target: '/$1' },
  { end: '/(.*)', target: '/$1' },
  { end: '(/.*)?', target: '$1' },
  { end: '(/.*)', target: '$1' },
] as const;

/** The match of a path, and its rewrite; text: why there is none. */
export function importPath({
  path,
  pathType,
  isExpression,
  rewriteTarget,
}: IngressPath): ImportedPath | string {
  if (isExpression && special.test(path)) return expressionOf(path, rewriteTarget);
  const value = path === '' ? '/' : path;
  const problem = plainProblem(value);
  if (problem !== undefined) return problem;
  const match = { type: pathType === 'Exact' ? 'Exact' : 'PathPrefix', value } as const;
  return { match, ...fullRewrite(rewriteTarget) };
}

function expressionOf(path: string, rewriteTarget: string | undefined): ImportedPath | string {
  const whole = withoutAnchors(path);
  for (const { end, target } of rests) {
    if (!whole.text.endsWith(end)) continue;
    const prefix = whole.text.slice(0, -end.length) || '/';
    if (special.test(prefix) || plainProblem(prefix) !== undefined) continue;
    const match = { type: 'PathPrefix', value: prefix } as const;
    const before =
      rewriteTarget?.endsWith(target) === true ? rewriteTarget.slice(0, -target.length) : undefined;
    if (before !== undefined && isTarget(before === '' ? '/' : before)) {
      const replacePrefixMatch = before === '' ? '/' : before;
      return { match, rewrite: { type: 'ReplacePrefixMatch', replacePrefixMatch }, problem: undefined };
    }
    return { match, ...fullRewrite(rewriteTarget) };
  }
  const body = whole.text.includes('|') ? `(?:${whole.text})` : whole.text;
  const isOpen = !whole.isEnd && !/\.\*\)?$/.test(body);
  const value = `(?i)${body}${isOpen ? '.*' : ''}`;
  const problem = value.length > maxLength ? `it is longer than ${maxLength}` : expressionProblem(value);
  return problem ?? { match: { type: 'RegularExpression', value }, ...fullRewrite(rewriteTarget) };
}

/** ingress-nginx puts `^` before each expression; a match of Gateway API is one of the whole path. */
function withoutAnchors(path: string): { readonly text: string; readonly isEnd: boolean } {
  const from = path.startsWith('^') ? 1 : 0;
  const isEnd = path.endsWith('$') && !path.endsWith('\\$');
  return { text: path.slice(from, isEnd ? -1 : undefined), isEnd };
}

/** Without a group, `rewrite-target` is the whole path for the backend. */
function fullRewrite(target: string | undefined): Pick<ImportedPath, 'rewrite' | 'problem'> {
  if (target === undefined) return { rewrite: undefined, problem: undefined };
  if (isTarget(target)) {
    return { rewrite: { type: 'ReplaceFullPath', replaceFullPath: target }, problem: undefined };
  }
  return { rewrite: undefined, problem: 'a Route replaces a prefix or the whole path, by a path alone' };
}

function isTarget(target: string): boolean {
  return target.length <= maxLength && /^\/[^\s$?#]*$/.test(target);
}
