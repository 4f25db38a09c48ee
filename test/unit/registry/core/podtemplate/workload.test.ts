import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../../src/objects/meta.ts';
import { validateSelectedTemplate } from '../../../../../src/registry/core/podtemplate.ts';
import { create, definitionOf, update } from '../../decide.ts';

const labels = { app: 'x' };
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'example.com/c:1' }] } };
const spec = { selector: { matchLabels: labels }, template };
const shownTemplate = {
  metadata: { labels },
  spec: {
    containers: [
      {
        name: 'c',
        image: 'example.com/c:1',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'IfNotPresent',
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
  },
};

describe('the defaults of', () => {
  it.each([
    [
      'Deployment',
      {
        replicas: 1,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
      },
    ],
    ['ReplicaSet', { replicas: 1 }],
    [
      'DaemonSet',
      {
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
        revisionHistoryLimit: 10,
      },
    ],
    [
      'StatefulSet',
      {
        replicas: 1,
        podManagementPolicy: 'OrderedReady',
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 1 } },
        revisionHistoryLimit: 10,
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
        serviceName: '',
      },
    ],
  ])('%s are what kube-apiserver shows', (kind, filled) => {
    const { object, errors } = create(definitionOf(kind), { spec, status: { replicas: 3 } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      metadata: { generation: 1 },
      spec: { ...filled, ...spec, template: shownTemplate },
    });
    expect(object).not.toHaveProperty('status.replicas', 3);
  });

  it('a ReplicationController take its selector and labels from the template', () => {
    const { object } = create(definitionOf('ReplicationController'), { spec: { template } });
    expect(object).toMatchObject({ metadata: { labels }, spec: { replicas: 1, selector: labels } });
  });
});

const unselected =
  'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`';

describe.each(['Deployment', 'ReplicaSet', 'DaemonSet', 'StatefulSet'])('a %s', (kind) => {
  const definition = definitionOf(kind);

  it('selects the Pods that it makes', () => {
    expect(create(definition, { spec: { ...spec, selector: { matchLabels: { app: 'y' } } } }).errors).toEqual(
      [unselected],
    );
    expect(create(definition, { spec: { template } }).errors).toEqual(['spec.selector: Required value']);
  });

  it('makes Pods that are always restarted', () => {
    const wrong = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } };
    expect(create(definition, { spec: { ...spec, template: wrong } }).errors).toEqual([
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ]);
  });

  it('keeps its selector', () => {
    const old = create(definition, { spec }).stored;
    const moved = {
      ...spec,
      selector: { matchLabels: { app: 'x', more: 'y' } },
      template: { ...template, metadata: { labels: { app: 'x', more: 'y' } } },
    };
    const { errors } = update(definition, old, { spec: moved });
    expect(errors).toEqual([
      'spec.selector: Invalid value: {"matchLabels":{"app":"x","more":"y"}}: field is immutable',
    ]);
  });

  it('counts changes of its spec, and reports through /status only', () => {
    const old = create(definition, { spec }).stored;
    expect(update(definition, old, { spec }).stored.metadata.generation).toBe(1);
    const changed = { ...spec, minReadySeconds: 5 };
    expect(update(definition, old, { spec: changed }).stored.metadata.generation).toBe(2);
    const status = update(definition, old, { spec: changed, status: { observedGeneration: 1 } }, 'status');
    expect(status.errors).toEqual([]);
    expect(status.object).toMatchObject({ metadata: { generation: 1 }, status: { observedGeneration: 1 } });
    expect(status.object).not.toHaveProperty('spec.minReadySeconds');
  });
});

describe('a Deployment', () => {
  const deployments = definitionOf('Deployment');

  it.each([
    [{ replicas: -1 }, ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']],
    [
      { strategy: { type: 'Recreate', rollingUpdate: {} } },
      ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ],
    [
      { strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: '0%' } } },
      ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0'],
    ],
    [
      { strategy: { rollingUpdate: { maxUnavailable: '101%' } } },
      ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
    ],
    [
      { minReadySeconds: 600 },
      ['spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds'],
    ],
  ])('with %j is refused', (change, errors) => {
    expect(create(deployments, { spec: { ...spec, ...change } }).errors).toEqual(errors);
  });

  it('selects something', () => {
    const words = { emptySelector: 'invalid for deployment', owner: 'ReplicaSet' };
    expect(validateSelectedTemplate({}, undefined, words, undefined)).toContainEqual({
      field: 'spec.selector',
      reason: 'FieldValueInvalid',
      body: 'Invalid value: {}: empty selector is invalid for deployment',
    });
  });

  it('has no more ready Pods than Pods', () => {
    const old = create(deployments, { spec }).stored;
    expect(update(deployments, old, { status: { replicas: 1, readyReplicas: 2 } }, 'status').errors).toEqual([
      'status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas',
    ]);
  });
});

describe('a StatefulSet', () => {
  const sets = definitionOf('StatefulSet');
  const path = 'spec.updateStrategy.rollingUpdate.maxUnavailable';

  it.each([
    [0, [`${path}: Invalid value: 0: cannot be 0`]],
    [-1, [`${path}: Invalid value: -1: must be greater than or equal to 0`]],
    ['0%', [`${path}: Invalid value: "0%": cannot be 0`]],
    ['101%', [`${path}: Invalid value: "101%": must not be greater than 100%`]],
    ['100%', []],
    [3, []],
  ])('may have %j Pods unavailable: %j', (maxUnavailable, errors) => {
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable } };
    expect(create(sets, { spec: { ...spec, updateStrategy } }).errors).toEqual(errors);
  });

  it('says which of its fields may not change', () => {
    const old = create(sets, { spec: { ...spec, serviceName: 'a' } }).stored;
    const claim = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } };
    const changed = {
      ...spec,
      serviceName: 'b',
      podManagementPolicy: 'Parallel',
      volumeClaimTemplates: [claim],
    };
    const { errors } = update(sets, old, { spec: changed });
    expect(errors).toEqual([
      expect.stringMatching(
        /^spec\.volumeClaimTemplates: Invalid value: \[\{"name":"data","Spec":\{"AccessModes":\["ReadWriteOnce"\],.*\}\]: field is immutable$/,
      ),
      'spec.serviceName: Invalid value: "b": field is immutable',
      'spec.podManagementPolicy: Invalid value: "Parallel": field is immutable',
    ]);
  });
});

it('a StatefulSet mounts the volumes that it claims', () => {
  const claims = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } };
  const [container] = template.spec.containers;
  const mounted = { ...container, volumeMounts: [{ name: 'data', mountPath: '/d' }] };
  const withMount = { ...template, spec: { containers: [mounted] } };
  const { errors, object } = create(definitionOf('StatefulSet'), {
    spec: { ...spec, template: withMount, volumeClaimTemplates: [claims] },
  });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({
    spec: {
      volumeClaimTemplates: [
        {
          kind: 'PersistentVolumeClaim',
          apiVersion: 'v1',
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' },
          status: { phase: 'Pending' },
        },
      ],
    },
  });
});

it('a DaemonSet counts the changes of its template in an annotation that clients cannot write', () => {
  const definition = definitionOf('DaemonSet');
  const name = 'deprecated.daemonset.template.generation';
  const countOf = ({ metadata }: KubeObject): string | undefined => metadata.annotations?.[name];
  const written = (count: string): object => ({ metadata: { annotations: { [name]: count } } });
  const { stored } = create(definition, { spec });
  expect(countOf(stored)).toBe('1');
  expect(countOf(create(definition, { ...written('7'), spec }).stored)).toBe('7');
  expect(countOf(update(definition, stored, { ...written('9'), spec }).stored)).toBe('1');
  expect(countOf(update(definition, stored, { spec: { ...spec, minReadySeconds: 5 } }).stored)).toBe('1');
  const other = { ...template, metadata: { labels: { ...labels, more: 'y' } } };
  expect(countOf(update(definition, stored, { spec: { ...spec, template: other } }).stored)).toBe('2');
  expect(countOf(update(definition, stored, { ...written('9'), spec, status: {} }, 'status').stored)).toBe(
    '1',
  );
});
