import { describe, expect, test } from 'vitest';
import { create, definitions, read, update } from '../../decide.ts';

const versions = definitions.filter(({ kind }) => kind === 'HorizontalPodAutoscaler');
const versionOf = (version: string) => {
  const found = versions.find((definition) => definition.version === version);
  if (found === undefined) throw new Error(`no ${version}`);
  return found;
};
const v1 = versionOf('v1');
const v2 = versionOf('v2');

const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const spec = { scaleTargetRef, maxReplicas: 3 };
const cpu = (averageUtilization: number) => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});

describe('an autoscaler of autoscaling/v2', () => {
  test('follows the use of CPU unless it says otherwise', () => {
    expect(create(v2, { spec }).object).toMatchObject({
      spec: { minReplicas: 1, metrics: [cpu(80)] },
      status: { currentMetrics: null, desiredReplicas: 0 },
    });
  });

  test('has rules for both directions when it has any', () => {
    const behavior = { scaleDown: { stabilizationWindowSeconds: 60 } };
    expect(create(v2, { spec: { ...spec, behavior } }).object).toMatchObject({
      spec: {
        behavior: {
          scaleUp: {
            stabilizationWindowSeconds: 0,
            selectPolicy: 'Max',
            policies: [
              { type: 'Pods', value: 4, periodSeconds: 15 },
              { type: 'Percent', value: 100, periodSeconds: 15 },
            ],
          },
          scaleDown: {
            stabilizationWindowSeconds: 60,
            selectPolicy: 'Max',
            policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
          },
        },
      },
    });
  });

  test.each([
    [
      { scaleTargetRef: {}, maxReplicas: 0 },
      [
        'spec.maxReplicas: Required value',
        'spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`',
        'spec.scaleTargetRef.kind: Required value',
        'spec.scaleTargetRef.name: Required value',
      ],
    ],
    [
      { ...spec, minReplicas: 0 },
      [
        'spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas',
      ],
    ],
    [
      { ...spec, metrics: [{ type: 'Moon' }] },
      [
        'spec.metrics[0].type: Unsupported value: "Moon": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
        'spec.metrics[0].type: Unsupported value: "Moon": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
      ],
    ],
    [
      {
        ...spec,
        metrics: [{ ...cpu(50), pods: { metric: { name: 'a' }, target: { type: 'Value', value: '1' } } }],
      },
      [
        'spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue',
        'spec.metrics[0].pods: Forbidden: must populate the given metric source only',
      ],
    ],
    [
      {
        ...spec,
        metrics: [
          {
            type: 'Resource',
            resource: { name: '', target: { type: '', averageUtilization: 0, averageValue: '-1' } },
          },
        ],
      },
      [
        'spec.metrics[0].resource.name: Required value: must specify a resource name',
        'spec.metrics[0].resource.target.type: Required value: must specify a metric target type',
        'spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
        'spec.metrics[0].resource.target.averageValue: Invalid value: "-1": must be positive',
        'spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0',
        'spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization',
      ],
    ],
    [
      {
        ...spec,
        behavior: {
          scaleUp: {
            stabilizationWindowSeconds: 3601,
            policies: [{ type: 'Moon', value: 0, periodSeconds: 1801 }],
          },
        },
      },
      [
        'spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600',
        'spec.behavior.scaleUp.policies[0].type: Unsupported value: "Moon": supported values: "Percent", "Pods"',
        'spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero',
        'spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
      ],
    ],
  ])('with %j is refused', (given, errors) => {
    expect(create(v2, { spec: given }).errors).toEqual(errors);
  });

  test('has no negative status', () => {
    const { stored } = create(v2, { spec });
    expect(update(v2, stored, { spec, status: { desiredReplicas: -1 } }, 'status').errors).toEqual([
      'status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0',
    ]);
  });
});

describe('an autoscaler of autoscaling/v1', () => {
  test('is one of v2 with a metric', () => {
    const { object, stored } = create(v1, { spec: { ...spec, targetCPUUtilizationPercentage: 70 } });
    expect(object).toMatchObject({ spec: { ...spec, minReplicas: 1, targetCPUUtilizationPercentage: 70 } });
    expect(stored).toMatchObject({ apiVersion: 'autoscaling/v2', spec: { metrics: [cpu(70)] } });
  });

  test.each([
    { type: 'Pods', pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '10' } } },
    { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } },
    {
      type: 'ContainerResource',
      containerResource: {
        name: 'cpu',
        container: 'c',
        target: { type: 'Utilization', averageUtilization: 5 },
      },
    },
    {
      type: 'External',
      external: {
        metric: { name: 'queue', selector: { matchLabels: { a: 'b' } } },
        target: { type: 'Value', value: '3' },
      },
    },
    {
      type: 'Object',
      object: {
        describedObject: { kind: 'Ingress', name: 'main' },
        metric: { name: 'rps' },
        target: { type: 'Value', value: '10k' },
      },
    },
  ])('carries what it has no member for in annotations: %j', (metric) => {
    const behavior = {
      scaleUp: { selectPolicy: 'Min', policies: [{ type: 'Pods', value: 1, periodSeconds: 1 }] },
    };
    const given = { spec: { ...spec, metrics: [metric, cpu(40)], behavior }, metadata: { name: 'a' } };
    const { stored } = create(v2, given);
    const shown = v1.storedAs?.fromStored(stored);
    expect(shown).toMatchObject({ spec: { targetCPUUtilizationPercentage: 40 } });
    expect(shown?.metadata.annotations?.['autoscaling.alpha.kubernetes.io/behavior']).toContain(
      '"ScaleUp":{',
    );
    const back = read(v1, { ...shown });
    expect(back).toMatchObject({ spec: { ...given.spec, behavior: { scaleUp: behavior.scaleUp } } });
    expect(back.metadata.annotations).toBeUndefined();
  });

  test.each([
    ...['not JSON', '[1]', '{"ScaleUp":3}', '{"ScaleUp":{"Tolerance":"x","Policies":[]}}'],
    ...['[{"type":"Pods","pods":7}]', '[{"type":"Pods","pods":{"targetAverageValue":"x"}}]'],
  ])('is not broken by an annotation %s', (text) => {
    const annotations = Object.fromEntries(
      ['metrics', 'behavior', 'current-metrics', 'conditions'].map((name) => [
        `autoscaling.alpha.kubernetes.io/${name}`,
        text,
      ]),
    );
    expect(() => create(v1, { metadata: { name: 'a', annotations }, spec })).not.toThrow();
  });
});
