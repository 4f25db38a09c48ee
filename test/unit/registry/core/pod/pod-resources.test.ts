import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../../src/objects/meta.ts';
import { create, definitionOf, memberOf, update } from '../../decide.ts';

const pod = definitionOf('Pod');

function container(name: string, resources: object, more: object = {}): object {
  return { name, image: 'example.com/c', resources, ...more };
}

describe('the resources of a Pod as a whole', () => {
  it('get requests from its containers, and a limit where all of them have one', () => {
    const { object, errors } = create(pod, {
      spec: {
        resources: { requests: { cpu: '1' } },
        initContainers: [
          container('i', { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } }),
          container(
            's',
            { requests: { cpu: '0', memory: '64Mi' }, limits: { cpu: '300m' } },
            { restartPolicy: 'Always' },
          ),
        ],
        containers: [container('c', { requests: { cpu: '0', memory: '100Mi' }, limits: { cpu: '500m' } })],
      },
    });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: { resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2' } } },
      status: { qosClass: 'Burstable' },
    });
  });

  it('have a limit that is no lower than the request', () => {
    const { object } = create(pod, {
      spec: {
        resources: { requests: { cpu: '3' } },
        containers: [container('c', { limits: { cpu: '500m' } })],
      },
    });
    expect(object).toMatchObject({ spec: { resources: { requests: { cpu: '3' }, limits: { cpu: '3' } } } });
  });

  it('have the huge pages of the containers', () => {
    const { object } = create(pod, {
      spec: {
        resources: { limits: { cpu: '1' } },
        containers: [container('c', { limits: { cpu: '1', 'hugepages-2Mi': '4Mi' } })],
      },
    });
    const amounts = { cpu: '1', 'hugepages-2Mi': '4Mi' };
    expect(object).toMatchObject({ spec: { resources: { limits: amounts, requests: amounts } } });
  });

  it.each([[{}], [{ requests: {} }], [{ limits: {} }]])('%j decide nothing', (resources) => {
    const amounts = { cpu: '1', memory: '1Gi' };
    const { object } = create(pod, {
      spec: { resources, containers: [container('c', { limits: amounts, requests: amounts })] },
    });
    expect(object).toHaveProperty('status.qosClass', 'Guaranteed');
  });

  it('are not left out by an update that does not know them', () => {
    const spec = { resources: { requests: { cpu: '1' } }, containers: [container('c', {})] };
    const old = create(pod, { spec }).stored;
    const { errors, object } = update(pod, old, { spec: { ...spec, resources: undefined } });
    expect(errors).toEqual([]);
    expect(object).toHaveProperty('spec.resources.requests.cpu', '1');
  });

  it.each([
    [
      { requests: { 'ephemeral-storage': '1' } },
      [
        'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"',
      ],
    ],
    [
      { requests: { cpu: '1' } },
      [
        'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
      ],
    ],
    [
      { limits: { memory: '1Gi' }, requests: { cpu: '2' } },
      [
        'spec.resources.containers[0][memory].limits: Invalid value: "2Gi": must be less than or equal to pod limits of 1Gi',
      ],
    ],
  ])('%j are refused', (resources, errors) => {
    const own = { requests: { cpu: '2', memory: '1Mi' }, limits: { memory: '2Gi' } };
    expect(create(pod, { spec: { resources, containers: [container('c', own)] } }).errors).toEqual(errors);
  });
});

describe('a resize', () => {
  const spec = {
    initContainers: [container('i', { requests: { cpu: '1' } })],
    containers: [container('c', { requests: { cpu: '1' } })],
  };
  const resize = (old: KubeObject, change: object) =>
    update(pod, old, { spec: { ...memberOf(old, 'spec'), ...change } }, 'resize');

  it('reaches init containers', () => {
    const old = create(pod, { spec }).stored;
    const { errors, object } = resize(old, { initContainers: [container('i', { requests: { cpu: '2' } })] });
    expect(errors).toEqual([]);
    expect(object).toHaveProperty('spec.initContainers.0.resources.requests.cpu', '2');
  });

  it('reaches the Pod as a whole, and takes nothing away from it', () => {
    const old = create(pod, {
      spec: { ...spec, resources: { requests: { cpu: '2', memory: '1Gi' } } },
    }).stored;
    const more = resize(old, { resources: { requests: { cpu: '3', memory: '1Gi' } } });
    expect(more.errors).toEqual([]);
    expect(more.object).toMatchObject({
      metadata: { generation: 2 },
      spec: { resources: { requests: { cpu: '3' } } },
    });
    expect(resize(old, { resources: undefined }).object).toHaveProperty('spec.resources.requests.cpu', '2');
    expect(resize(old, { resources: { requests: { cpu: '3' } } }).errors).toEqual([
      'spec.resources.requests: Forbidden: pod-level resource requests cannot be removed',
    ]);
  });

  it('is not for Pods of Windows', () => {
    const windows = create(pod, { spec: { ...spec, os: { name: 'windows' } } }).stored;
    expect(resize(windows, {}).errors).toEqual([': Forbidden: windows pods cannot be resized']);
  });
});
