import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

describe('a ResourceQuota', () => {
  const quotas = definitionOf('ResourceQuota');

  it.each([
    [{ hard: { services: '1500m' } }, ['spec.hard[services]: Invalid value: "1500m": must be an integer']],
    [{ hard: { cpu: '-1' } }, ['spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0']],
    [
      { hard: { bogus: '1' } },
      [
        'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified',
        'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource for quota',
      ],
    ],
    [
      { scopes: ['BestEffort', 'NotBestEffort'] },
      ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
    ],
    [{ hard: { 'services.nodeports': '2', 'count/widgets.example.com': '1' } }, []],
    [{ hard: { 'hugepages-2Mi': '2Mi', 'requests.hugepages-1Gi': '1Gi' } }, []],
    [
      { hard: { storage: '1', '': '1' } },
      [
        'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
        'spec.hard[]: Invalid value: "": name part must be non-empty',
        "spec.hard[]: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'spec.hard[]: Invalid value: "": must be a standard resource for quota',
      ],
    ],
    [
      { hard: { cpu: '1', services: '1', pods: '1', 'count/x.example.com': '1' }, scopes: ['BestEffort'] },
      [
        'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
        'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
      ],
    ],
    [{ hard: { cpu: '1' }, scopes: ['Fast'] }, ['spec.scopes: Invalid value: ["Fast"]: unsupported scope']],
    [{ hard: { cpu: '1' }, scopes: ['CrossNamespacePodAffinity'] }, []],
    [{ hard: { 'requests.storage': '1' }, scopes: ['VolumeAttributesClass'] }, []],
  ])('with %j has the errors %j', (spec, errors) => {
    expect(create(quotas, { spec }).errors).toEqual(errors);
  });

  it.each([
    [[{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }], []],
    [
      [{ scopeName: 'PriorityClass', operator: 'NotIn' }],
      [
        "values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
      ],
    ],
    [
      [{ scopeName: 'PriorityClass', operator: 'DoesNotExist', values: ['a'] }],
      [
        "values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
      ],
    ],
    [
      [{ scopeName: 'BestEffort', operator: 'Is' }],
      [
        'operator: Invalid value: "Is": must be \'Exists\' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity',
        'operator: Invalid value: "Is": not a valid selector operator',
      ],
    ],
    [[{ scopeName: 'Fast', operator: 'Exists' }], ['scopeName: Invalid value: "Fast": unsupported scope']],
  ])('selects scopes by %j with the errors %j', (matchExpressions, errors) => {
    const spec = { hard: { pods: '1' }, scopeSelector: { matchExpressions } };
    expect(create(quotas, { spec }).errors).toEqual(
      errors.map((error) => `spec.scopeSelector.matchExpressions.${error}`),
    );
  });

  it('selects only scopes of what it bounds, and none against another', () => {
    const exists = (scopeName: string) => ({ scopeName, operator: 'Exists' });
    const matchExpressions = [exists('Terminating'), exists('NotTerminating')];
    const path = 'spec.scopeSelector.matchExpressions';
    const shown =
      '{"MatchExpressions":[{"ScopeName":"Terminating","Operator":"Exists","Values":null},{"ScopeName":"NotTerminating","Operator":"Exists","Values":null}]}';
    const unsupported = `${path}: Invalid value: ${shown}: unsupported scope applied to resource`;
    const spec = { hard: { services: '1' }, scopeSelector: { matchExpressions } };
    expect(create(quotas, { spec }).errors).toEqual([
      unsupported,
      unsupported,
      `${path}: Invalid value: null: conflicting scopes`,
    ]);
  });

  it('counts in whole numbers, of which thousandths are the finest that is looked at', () => {
    expect(create(quotas, { spec: { hard: { pods: '1999999u' } } }).errors).toEqual([]);
  });

  it('keeps its scopes, and is used through /status', () => {
    const old = create(quotas, { spec: { hard: { pods: '1' } }, status: { used: { pods: '1' } } }).stored;
    expect(update(quotas, old, { spec: { scopes: ['BestEffort'] } }).errors).toEqual([
      'spec.scopes: Invalid value: ["BestEffort"]: field is immutable',
    ]);
    expect(update(quotas, old, { status: { used: { pods: '1' } } }, 'status').object).toMatchObject({
      spec: { hard: { pods: '1' } },
      status: { used: { pods: '1' } },
    });
  });
});

describe('a LimitRange', () => {
  const ranges = definitionOf('LimitRange');

  it('fills limits of containers in from the maximum, and requests from limits, then from the minimum', () => {
    const limits = [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '1', memory: '1Gi' } }];
    expect(create(ranges, { spec: { limits } }).object).toMatchObject({
      spec: { limits: [{ default: { cpu: '2' }, defaultRequest: { cpu: '2', memory: '1Gi' } }] },
    });
  });

  it.each([
    [
      [{ type: 'Pod', min: { cpu: '2' }, max: { cpu: '1' } }],
      ['spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
    ],
    [
      [{ type: 'Pod', default: { cpu: '2' } }],
      ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
    ],
    [[{ type: 'Pod' }, { type: 'Pod' }], ['spec.limits[1].type: Duplicate value: "Pod"']],
  ])('with %j is refused', (limits, errors) => {
    expect(create(ranges, { spec: { limits } }).errors).toEqual(errors);
  });
});

describe('a PersistentVolumeClaim', () => {
  const claims = definitionOf('PersistentVolumeClaim');
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };

  it('waits for a volume', () => {
    expect(create(claims, { spec, status: { phase: 'Bound' } }).object).toMatchObject({
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    });
  });

  it('asks for storage in some mode', () => {
    expect(create(claims, { spec: {} }).errors).toEqual([
      'spec.accessModes: Required value: at least 1 access mode is required',
      'spec.resources[storage]: Required value',
    ]);
  });

  it('may be bound, and changes in no other way', () => {
    const old = create(claims, { spec }).stored;
    expect(update(claims, old, { spec: { ...spec, volumeName: 'v' } }).errors).toEqual([]);
    expect(update(claims, old, { spec: { ...spec, volumeMode: 'Block' } }).errors).not.toEqual([]);
  });
});
