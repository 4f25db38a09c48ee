/**
 * Selectors of access reviews (`pkg/registry/authorization/util/helpers.go`, KEP-4601). The authorizers ignore them, as
 * RBAC does: parse errors are reported and have no other effect.
 */
import { parseFieldSelector } from '../../../objects/field-selector.ts';
import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import { compileLabelSelector, parseLabelSelector } from '../../../objects/labels/labels.ts';

/** The `status.evaluationError` of a review; "" when all selectors can be parsed. */
export function selectorErrors(spec: JsonRecord): string {
  const attributes = spec['resourceAttributes'];
  if (!isRecord(attributes)) return '';
  const { fieldSelector, labelSelector } = attributes;
  return [
    ...parseError('fieldSelector', fieldSelector, parseFieldSelector, isFieldRequirement),
    ...parseError('labelSelector', labelSelector, parseLabelSelector, isLabelRequirement),
  ].join('; ');
}

function parseError(
  name: string,
  selector: unknown,
  parse: (raw: string) => unknown,
  isRequirement: (value: JsonRecord) => boolean,
): string[] {
  if (!isRecord(selector)) return [];
  const { rawSelector, requirements } = selector;
  const listed = Array.isArray(requirements) ? requirements.filter(isRecord) : [];
  const readable = listed.filter(isRequirement);
  const ignored =
    listed.length > 0
      ? readable.length < listed.length
      : typeof rawSelector === 'string' && !succeeds(() => parse(rawSelector));
  const partially = readable.length > 0 ? 'partially ' : '';
  return ignored ? [`spec.resourceAttributes.${name} ${partially}ignored due to parse error`] : [];
}

/** Field selectors know `=` and `!=` only: In and NotIn with one value. */
function isFieldRequirement({ operator, values }: JsonRecord): boolean {
  return (operator === 'In' || operator === 'NotIn') && isStringList(values) && values.length === 1;
}

function isLabelRequirement({ key, operator, values }: JsonRecord): boolean {
  const expression = {
    key: typeof key === 'string' ? key : '',
    operator: typeof operator === 'string' ? operator : '',
    values: isStringList(values) ? values : [],
  };
  return succeeds(() => compileLabelSelector({ matchExpressions: [expression] }));
}

function succeeds(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}
