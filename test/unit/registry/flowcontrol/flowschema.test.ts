import { describe, expect, test } from 'vitest';
import { create, definitionOf } from '../decide.ts';

const kind = definitionOf('FlowSchema');
const subject = { kind: 'Group', group: { name: 'g' } };
const url = { verbs: ['*'], nonResourceURLs: ['*'] };
const spec = (members: object) => ({ priorityLevelConfiguration: { name: 'system' }, ...members });
const withSubject = (given: object) => spec({ rules: [{ subjects: [given], nonResourceRules: [url] }] });
const withResource = (rule: object) => spec({ rules: [{ subjects: [subject], resourceRules: [rule] }] });
const withUrl = (rule: object) => spec({ rules: [{ subjects: [subject], nonResourceRules: [rule] }] });
const errorsOf = (given: object) => create(kind, { metadata: { name: 'a' }, spec: given }).errors;

describe('a FlowSchema', () => {
  test('comes in the middle unless it says otherwise', () => {
    const { object, errors } = create(kind, { spec: spec({}) });
    expect([errors, object]).toMatchObject([[], { spec: { matchingPrecedence: 1000 } }]);
  });

  test.each([
    [{}, ['spec.priorityLevelConfiguration.name: Required value: must reference a priority level']],
    [
      spec({ matchingPrecedence: -1 }),
      ['spec.matchingPrecedence: Invalid value: -1: must be a positive value'],
    ],
    [
      spec({ matchingPrecedence: 10_001 }),
      ['spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000'],
    ],
    [
      spec({ matchingPrecedence: 1 }),
      [
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
      ],
    ],
    [
      spec({ distinguisherMethod: { type: 'x' } }),
      [
        'spec.distinguisherMethod.type: Unsupported value: {"Type":"x"}: supported values: "ByNamespace", "ByUser"',
      ],
    ],
    [
      spec({ rules: [{ subjects: [] }] }),
      [
        'spec.rules[0].subjects: Required value: subjects must contain at least one value',
        'spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty',
      ],
    ],
  ])('with %j has the errors %j', (given, errors) => {
    expect(errorsOf(given)).toEqual(errors);
  });

  test.each([
    [{ kind: 'User' }, ["user: Required value: user is required when subject kind is 'User'"]],
    [
      { kind: 'User', user: { name: 'a' }, serviceAccount: {}, group: { name: 'g' } },
      [
        "serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'",
        "group: Forbidden: group is forbidden when subject kind is not 'Group'",
      ],
    ],
    [{ kind: 'x' }, ['kind: Unsupported value: "x": supported values: "Group", "ServiceAccount", "User"']],
    [
      { kind: 'ServiceAccount', serviceAccount: { name: '' } },
      [
        'serviceAccount.name: Required value',
        'serviceAccount.namespace: Required value: must specify namespace for service account',
      ],
    ],
    [{ kind: 'ServiceAccount', serviceAccount: { name: '*', namespace: 'n' } }, []],
  ])('with the subject %j has the errors %j', (given, errors) => {
    const path = 'spec.rules[0].subjects[0].';
    expect(errorsOf(withSubject(given))).toEqual(errors.map((error) => path + error));
  });

  test.each([
    [
      { verbs: ['get', '*'], apiGroups: ['*', 'apps'], resources: [], namespaces: ['*', 'a'] },
      [
        `verbs: Invalid value: ["get","*"]: if '*' is present, must not specify other verbs`,
        `apiGroups: Invalid value: ["*","apps"]: if '*' is present, must not specify other api groups`,
        'resources: Required value: resource rules must supply at least one resource',
        `namespaces: Invalid value: ["*","a"]: if '*' is present, must not specify other namespaces`,
      ],
    ],
    [
      { verbs: ['eat'], apiGroups: [''], resources: ['pods'] },
      [
        'verbs: Unsupported value: ["eat"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
        'namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace',
      ],
    ],
    [{ verbs: ['get'], apiGroups: [''], resources: ['nodes'], clusterScope: true }, []],
  ])('with the rule %j has the errors %j', (rule, errors) => {
    const path = 'spec.rules[0].resourceRules[0].';
    expect(errorsOf(withResource(rule))).toEqual(errors.map((error) => path + error));
  });

  test.each([
    ['', 'must not be empty'],
    ['a', 'must start with slash'],
    ['/a b', 'must not contain white-space'],
    ['//', 'must not contain double slash'],
    ['/*/a', 'wildcard can only do suffix matching'],
    ['/a*', 'wildcard can only do suffix matching'],
    ['/a/*', undefined],
    ['/', undefined],
  ])('with the path %j is refused: %j', (path, detail) => {
    const errors = errorsOf(withUrl({ verbs: ['get'], nonResourceURLs: [path] }));
    const place = 'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]';
    const expected = `${place}: Invalid value: ${JSON.stringify(path)}: ${detail ?? ''}`;
    expect(errors).toEqual(detail === undefined ? [] : [expected]);
  });

  test('that every cluster has keeps its spec', () => {
    const given = { ...spec({ matchingPrecedence: 10_000 }) };
    expect(create(kind, { metadata: { name: 'catch-all' }, spec: given }).errors).toEqual([
      'spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"system"},"MatchingPrecedence":10000,"DistinguisherMethod":null,"Rules":null}: spec of "catch-all" must equal the fixed value',
    ]);
  });
});
