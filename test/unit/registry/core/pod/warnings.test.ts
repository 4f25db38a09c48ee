import { expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const container = { name: 'c', image: 'example.com/c' };

it.each([
  [
    { containers: [{ ...container, ports: [{ containerPort: 80 }, { containerPort: 80 }] }] },
    ['spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]'],
  ],
  [
    { containers: [{ ...container, ports: [{ containerPort: 80, hostPort: 81 }, { containerPort: 80 }] }] },
    ['spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]'],
  ],
  [
    {
      containers: [
        {
          ...container,
          ports: [
            { containerPort: 80, hostPort: 81 },
            { containerPort: 80, hostPort: 81, hostIP: '10.0.0.1' },
          ],
        },
      ],
    },
    ['spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]'],
  ],
  [
    {
      containers: [
        {
          ...container,
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2' },
          ],
        },
      ],
    },
    ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
  ],
  [
    {
      containers: [
        {
          ...container,
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '$(A)2' },
          ],
        },
      ],
    },
    [],
  ],
  [
    { containers: [container], imagePullSecrets: [{ name: 'a' }, { name: 'a' }] },
    ['spec.imagePullSecrets[1].name: duplicate name "a"'],
  ],
])('%j is warned of', (spec, warnings) => {
  expect(create(definitionOf('Pod'), { spec }).warnings).toEqual(warnings);
});

it('a negative grace period is warned of in templates; Pods get one second', () => {
  const labels = { app: 'x' };
  const template = {
    metadata: { labels },
    spec: { containers: [container], terminationGracePeriodSeconds: -1 },
  };
  const made = create(definitionOf('Deployment'), { spec: { selector: { matchLabels: labels }, template } });
  expect(made.errors).toEqual([]);
  expect(made.warnings).toEqual([
    'spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
  ]);
  const pod = create(definitionOf('Pod'), template);
  expect(pod.warnings).toEqual([]);
  expect(pod.object).toHaveProperty('spec.terminationGracePeriodSeconds', 1);
});

it('a template is warned of when it is new or changed', () => {
  const deployments = definitionOf('Deployment');
  const labels = { app: 'x' };
  const ports = [{ containerPort: 80 }, { containerPort: 80 }];
  const template = { metadata: { labels }, spec: { containers: [{ ...container, ports }] } };
  const spec = { selector: { matchLabels: labels }, template };
  const warnings = [
    'spec.template.spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]',
  ];
  const made = create(deployments, { spec });
  expect(made.warnings).toEqual(warnings);
  expect(update(deployments, made.stored, { spec }).warnings).toEqual([]);
  expect(update(deployments, made.stored, { spec: { ...spec, replicas: 2 } }).warnings).toEqual(warnings);
});
