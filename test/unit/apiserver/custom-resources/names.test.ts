import { describe, expect, test } from 'vitest';
import { judgeNames } from '../../../../src/apiserver/custom-resources/names.ts';
import { withApproval } from '../../../../src/registry/customresourcedefinition/approval.ts';
import type {
  CustomResourceDefinition,
  CustomResourceNames,
} from '../../../../src/registry/customresourcedefinition/definition.ts';

const now = '2026-01-01T00:00:00Z';
const fresh = { plural: '', kind: '' };
const as = { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' };

function definition(
  names: CustomResourceNames,
  acceptedNames: CustomResourceNames = fresh,
): CustomResourceDefinition {
  return {
    kind: 'CustomResourceDefinition',
    metadata: { name: `${names.plural}.x.io` },
    spec: { group: 'x.io', scope: 'Cluster', names, versions: [] },
    status: { acceptedNames, conditions: null, storedVersions: [] },
  };
}

function messages(judged: CustomResourceDefinition, ...others: CustomResourceDefinition[]): unknown[] {
  return (judgeNames(judged, others, now).conditions ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${String(reason)}: ${String(message)}`,
  );
}

const accepted = [
  'NamesAccepted True NoConflicts: no conflicts found',
  'Established True InitialNamesAccepted: the initial names have been accepted',
];

describe('judgeNames', () => {
  const taken = { plural: 'bs', singular: 'b', shortNames: ['x', 'y'], kind: 'B', listKind: 'BList' };

  test('accepts names that nobody has, also a short one that is its own plural', () => {
    expect(messages(definition({ ...as, shortNames: ['as'] }), definition(taken, taken))).toEqual(accepted);
  });

  test.each([
    [{ shortNames: ['x'] }, 'ShortNamesConflict: "x" is already in use'],
    [
      { shortNames: ['y', 'z', 'x', 'y'] },
      'ShortNamesConflict: ["y" is already in use, "x" is already in use]',
    ],
    [{ singular: 'bs' }, 'SingularConflict: "bs" is already in use'],
    [{ kind: 'B', listKind: 'BList' }, 'ListKindConflict: "BList" is already in use'],
  ])('refuses %j', (names, expected) => {
    expect(messages(definition({ ...as, ...names }), definition(taken, taken))).toEqual([
      `NamesAccepted False ${expected}`,
      'Established False NotAccepted: not all names are accepted',
    ]);
  });

  test('gives up names that are no longer asked for', () => {
    const judged = definition(as, { ...as, shortNames: ['x'], categories: ['all'] });
    expect(judgeNames(judged, [], now).acceptedNames).toEqual(as);
  });

  test('does not look at accepted names again', () => {
    expect(judgeNames(definition(as, as), [definition(as, as)], now)).toMatchObject({ conditions: null });
  });
});

describe('withApproval', () => {
  function conditions(group: string, annotation?: string): unknown[] | null {
    const judged = definition(as);
    judged.spec.group = group;
    if (annotation !== undefined) judged.metadata.annotations = { 'api-approved.kubernetes.io': annotation };
    return withApproval(judged, now).status.conditions;
  }

  test('says nothing of groups that are not protected', () => {
    expect(conditions('x.io', 'https://a.b/1')).toBe(null);
  });

  test.each([
    ['https://a.b/1', 'True', 'ApprovedAnnotation', 'approved in https://a.b/1'],
    ['unapproved, test', 'False', 'UnapprovedAnnotation', 'not approved: "unapproved, test"'],
    ['https:a', 'False', 'InvalidAnnotation', expect.stringContaining('with either a URL')],
    [undefined, 'False', 'MissingAnnotation', expect.stringContaining('must have approval annotation')],
  ])('of %s', (annotation, status, reason, message: unknown) => {
    expect(conditions('x.k8s.io', annotation)).toEqual([
      {
        type: 'KubernetesAPIApprovalPolicyConformant',
        status,
        lastTransitionTime: now,
        reason,
        message,
      },
    ]);
  });
});
