/**
 * Selectors of access reviews (`pkg/registry/authorization/util/helpers.go`, KEP-4601). The authorizers here ignore
 * them, as RBAC does in kube-apiserver: parse errors are reported, without further effect.
 */
import { parseFieldSelector } from '../../../objects/field-selector.ts';
import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import { compileLabelSelector, parseLabelSelector } from '../../../objects/labels/labels.ts';

/** `status.evaluationError` of a review; "" when all selectors can be read. */
export function selectorErrors(spec: JsonRecord): string {
  const attributes = spec['resourceAttributes'];
  if (!isRecord(attributes)) return '';
  const { fieldSelector, labelSelector } = attributes;
  return [
    ...faultOf('fieldSelector', fieldSelector, parseFieldSelector, isFieldRequirement),
    ...faultOf('labelSelector', labelSelector, parseLabelSelector, isLabelRequirement),
  ].join('; ');
}

function faultOf(
  name: string,
  selector: unknown,
  parse: (raw: string) => unknown,
  isRequirement: (value: JsonRecord) => boolean,
): string[] {
  if (!isRecord(selector)) return [];
  const { rawSelector, requirements } = selector;
  const listed = Array.isArray(requirements) ? requirements.filter(isRecord) : [];
  const read = listed.filter(isRequirement);
  const ignored =
    listed.length > 0
      ? read.length < listed.length
      : typeof rawSelector === 'string' && !succeeds(() => parse(rawSelector));
  const partially = read.length > 0 ? 'partially ' : '';
  return ignored ? [`spec.resourceAttributes.${name} ${partially}ignored due to parse error`] : [];
}

/** Fields are equal to one value, or are not. */
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

function succeeds(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}
