/** Tables of admission policies and their bindings. */
import { at, listAt, recordAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

const unset = '<unset>';
const paramKindColumn = column('ParamKind', 'The kind of its parameters.');

export const validatingAdmissionPoliciesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Validations', 'The number of validations.', { type: 'integer' }),
    paramKindColumn,
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    listAt(object, 'spec', 'validations').length,
    paramKind(object),
    ageOf(object, now),
  ],
};

export const mutatingAdmissionPoliciesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Mutations', 'The number of mutations.', { type: 'integer' }),
    paramKindColumn,
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    listAt(object, 'spec', 'mutations').length,
    paramKind(object),
    ageOf(object, now),
  ],
};

function paramKind(policy: unknown): string {
  const kind = at(policy, 'spec', 'paramKind');
  return kind === undefined ? unset : `${textAt(kind, 'apiVersion')}/${textAt(kind, 'kind')}`;
}

/** Bindings of both kinds of policy. */
export const policyBindingsTable: TableConverter = {
  columns: [
    nameColumn,
    column('PolicyName', 'The policy that is bound.'),
    column('ParamRef', 'The parameters that it is bound with.'),
    ageColumn,
  ],
  cells(object, now) {
    const reference = at(object, 'spec', 'paramRef');
    return [
      nameOf(object),
      textAt(object, 'spec', 'policyName'),
      reference === undefined ? unset : referenceText(reference),
      ageOf(object, now),
    ];
  },
};

/** The parameters by name, or else by selector; `*` for the namespace where none is named. */
function referenceText(reference: unknown): string {
  const name = textAt(reference, 'name');
  if (name !== '') return `${textAt(reference, 'namespace') || '*'}/${name}`;
  const selector = at(reference, 'selector');
  return selector === undefined ? unset : goSelector(selector);
}

/** A selector as Go prints its generated type. */
function goSelector(selector: unknown): string {
  const labels = Object.entries(recordAt(selector, 'matchLabels'))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${String(value)},`);
  const expressions = listAt(selector, 'matchExpressions').map((expression) => {
    const values = listAt(expression, 'values').map(String).join(' ');
    const [key, operator] = [textAt(expression, 'key'), textAt(expression, 'operator')];
    return `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values}],},`;
  });
  const parts = [
    `MatchLabels:map[string]string{${labels.join('')}},`,
    `MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},`,
  ];
  return `&LabelSelector{${parts.join('')}}`;
}
