import { Parser, scan } from './label-selector.ts';
import {
  type LabelOperator,
  type LabelRequirement,
  type Labels,
  newRequirement,
  requirementHolds,
} from './label-selector.ts';
import type { LabelSelector } from '../meta.ts';
import { errorMessage } from '../status.ts';

/** A selector that matches every object has no requirements; one that matches none is `nothing`. */
export type ParsedLabelSelector = readonly LabelRequirement[] | 'nothing';

/**
 * Parses the text of a `labelSelector` parameter such as `a=b,c in (x,y),!d` (apimachinery `labels/selector.go`), with
 * all that kube-apiserver accepts: `a in (,b)` has the empty value in its set.
 *
 * @throws {StatusError} 400 with kube-apiserver's text.
 */
export function parseLabelSelector(text: string): readonly LabelRequirement[] {
  const parser = new Parser(scan(text));
  const requirements = parser.selector();
  return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** True when `labels` meet every requirement. Absent labels count as none. */
export function matchesLabels(selector: ParsedLabelSelector, labels: Labels | undefined): boolean {
  if (selector === 'nothing') return false;
  return selector.every((requirement) => requirementHolds(requirement, labels ?? {}));
}

/**
 * True when `labels` hold every pair of `wanted`: a Service's `spec.selector`. An empty `wanted` matches everything;
 * callers that must not select with an absent selector check that first.
 */
export function containsLabels(labels: Labels | undefined, wanted: Labels): boolean {
  for (const key of Object.keys(wanted)) {
    if (labels === undefined || !Object.hasOwn(labels, key) || labels[key] !== wanted[key]) return false;
  }
  return true;
}

/**
 * Turns a meta/v1 LabelSelector into requirements (`LabelSelectorAsSelector`): absent selects nothing, empty selects
 * everything.
 *
 * @throws {Error} for an unknown operator or a broken key or value.
 */
export function compileLabelSelector(selector: LabelSelector | undefined | null): ParsedLabelSelector {
  if (selector === undefined || selector === null) return 'nothing';
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    requirements.push(newRequirement(key, '=', [value]));
  }
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    requirements.push(newRequirement(key, objectOperator(operator), values ?? []));
  }
  return requirements;
}

/**
 * A selector in a spec, which may have been stored before its schema was. One that does not parse selects nothing, and
 * `problems` gets the reason and the consequence.
 *
 * @returns undefined for no selector.
 */
export function readLabelSelector(
  selector: LabelSelector | undefined,
  { path, consequence }: { readonly path: string; readonly consequence: string },
  problems: string[],
): ParsedLabelSelector | undefined {
  if (selector === undefined) return undefined;
  try {
    return compileLabelSelector(selector);
  } catch (error) {
    problems.push(`${path}: ${errorMessage(error)}; ${consequence}`);
    return 'nothing';
  }
}

/** The selector as text that {@link parseLabelSelector} reads back. */
export function renderLabelSelector(requirements: readonly LabelRequirement[]): string {
  return requirements.map(render).join(',');
}

function render({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case 'gt':
      return `${key}>${values.join(',')}`;
    case 'lt':
      return `${key}<${values.join(',')}`;
    case '=':
    case '==':
    case '!=':
      return `${key}${operator}${values.join(',')}`;
  }
}

function objectOperator(operator: string): LabelOperator {
  switch (operator) {
    case 'In':
      return 'in';
    case 'NotIn':
      return 'notin';
    case 'Exists':
      return 'exists';
    case 'DoesNotExist':
      return '!';
    default:
      throw new Error(`${JSON.stringify(operator)} is not a valid label selector operator`);
  }
}
