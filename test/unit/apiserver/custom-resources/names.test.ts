import type {
  CustomResourceDefinition,
  CustomResourceDefinitionNames,
} from '../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';
import { setEstablished, acceptNames } from '../../../../src/apiserver/custom-resources/names.ts';
import { withApproval } from '../../../../src/registry/apiextensions/customresourcedefinition/strategy.ts';

const now = '2026-01-01T00:00:00Z';
const fresh = { plural: '', kind: '' };
const as = { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' };

function definition(
  names: CustomResourceDefinitionNames,
  acceptedNames: CustomResourceDefinitionNames = fresh,
): CustomResourceDefinition {
  return {
    kind: 'CustomResourceDefinition',
    metadata: { name: `${names.plural}.x.io` },
    spec: { group: 'x.io', scope: 'Cluster', names, versions: [] },
    status: { acceptedNames, conditions: null, storedVersions: [] },
  };
}

function messages(judged: CustomResourceDefinition, ...others: CustomResourceDefinition[]): unknown[] {
  return (acceptNames(judged, others, now).conditions ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${String(reason)}: ${String(message)}`,
  );
}

const accepted = [
  'NamesAccepted True NoConflicts: no conflicts found',
  'Established False Installing: the initial names have been accepted',
];

describe('acceptNames', () => {
  const taken = { plural: 'bs', singular: 'b', shortNames: ['x', 'y'], kind: 'B', listKind: 'BList' };

  test('accepts unused names, also a short one that is its own plural', () => {
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

  test('gives no name of a definition another meaning at once', () => {
    const before = { ...as, shortNames: ['x'] };
    const plural = definition({ ...as, shortNames: ['x', 'as'] }, before);
    expect(messages(plural, plural)[0]).toBe(
      'NamesAccepted False ShortNamesConflict: "as" is already in use',
    );
    const swapped = definition({ ...as, singular: 'x', shortNames: ['a'] }, before);
    expect(messages(swapped, swapped)[0]).toBe(
      'NamesAccepted False ShortNamesConflict: "a" is already in use',
    );
    expect(acceptNames(swapped, [swapped], now).acceptedNames).toEqual(before);
  });

  test('lets a definition stay established whose new names are taken', () => {
    const judged = definition({ ...as, shortNames: ['x'] }, as);
    const established = { type: 'Established', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' };
    judged.status.conditions = [established];
    const { conditions, acceptedNames } = acceptNames(judged, [judged, definition(taken, taken)], now);
    expect(conditions?.[0]).toEqual(established);
    expect(conditions?.[1]).toMatchObject({ type: 'NamesAccepted', status: 'False' });
    expect(acceptedNames).toEqual(as);
  });

  test('gives up names that are no longer asked for', () => {
    const judged = definition(as, { ...as, shortNames: ['x'], categories: ['all'] });
    expect(acceptNames(judged, [], now).acceptedNames).toEqual(as);
  });

  test('does not look at accepted names again', () => {
    expect(acceptNames(definition(as, as), [definition(as, as)], now)).toMatchObject({ conditions: null });
  });
});

describe('establish', () => {
  function withConditions(...conditions: [type: string, status: string][]): CustomResourceDefinition {
    const judged = definition(as, as);
    judged.status.conditions = conditions.map(([type, status]) => ({ type, status }));
    return judged;
  }

  test('follows accepted names, once', () => {
    const installing = withConditions(['NamesAccepted', 'True'], ['Established', 'False']);
    expect(setEstablished(installing, now)?.[1]).toEqual({
      type: 'Established',
      status: 'True',
      lastTransitionTime: now,
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    });
    for (const waiting of [
      withConditions(['NamesAccepted', 'False']),
      withConditions(),
      withConditions(['NamesAccepted', 'True'], ['Established', 'True']),
    ]) {
      expect(setEstablished(waiting, now)).toBe(waiting.status.conditions);
    }
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

test('what is converted by a webhook without a certificate is established when it has one', () => {
  const convertedWith = (caBundle: string, before?: CustomResourceDefinition): CustomResourceDefinition => {
    const wanted = before ?? definition(as, as);
    const webhook = { clientConfig: { url: 'https://a', caBundle }, conversionReviewVersions: ['v1'] };
    return { ...wanted, spec: { ...wanted.spec, conversion: { strategy: 'Webhook', webhook } } };
  };
  const named = { type: 'NamesAccepted', status: 'True', lastTransitionTime: now };
  const unsure = convertedWith('Cg==');
  unsure.status.conditions = [named];
  const conditions = setEstablished(unsure, now);
  const bad = { type: 'Established', status: 'False', lastTransitionTime: now, reason: 'InvalidCABundle' };
  expect(conditions).toEqual([named, { ...bad, message: 'The conversion webhook CABundle is invalid' }]);
  unsure.status.conditions = conditions;
  expect(setEstablished(unsure, '2027-01-01T00:00:00Z')).toBe(conditions);
  expect(setEstablished(convertedWith('', unsure), now)).toMatchObject([
    named,
    { type: 'Established', status: 'True', reason: 'InitialNamesAccepted' },
  ]);
});
