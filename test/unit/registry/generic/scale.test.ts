import { describe, expect, it } from 'vitest';
import { fromScale, type Scalable, toScale, validateScale } from '../../../../src/registry/generic/scale.ts';

const deployment: Scalable = {
  metadata: { name: 'a', namespace: 'ns', uid: 'u', resourceVersion: '7', labels: { hidden: 'x' } },
  spec: {
    replicas: 3,
    selector: {
      matchLabels: { tier: 'web', app: 'x' },
      matchExpressions: [
        { key: 'env', operator: 'In', values: ['b', 'a'] },
        { key: 'old', operator: 'DoesNotExist' },
        { key: 'new', operator: 'Exists' },
      ],
    },
  },
  status: { replicas: 2 },
};

describe('a Scale', () => {
  it('shows the number of Pods and how they are selected', () => {
    expect(toScale(deployment)).toEqual({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'a', namespace: 'ns', uid: 'u', resourceVersion: '7' },
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app=x,env in (a,b),new,!old,tier=web' },
    });
  });

  it('shows the plain selector of a ReplicationController', () => {
    const controller = { ...deployment, spec: { replicas: 0, selector: { b: '2', a: '1' } } };
    expect(toScale(controller, true)).toMatchObject({ spec: {}, status: { selector: 'a=1,b=2' } });
  });

  it('changes the number of Pods, with the resourceVersion that it names', () => {
    const scaled = fromScale(deployment, {
      metadata: { resourceVersion: '6' },
      spec: { replicas: 5 },
      status: { replicas: 0 },
    });
    expect(scaled).toMatchObject({
      metadata: { resourceVersion: '6' },
      spec: { replicas: 5 },
      status: { replicas: 2 },
    });
    expect(deployment.spec.replicas).toBe(3);
    expect(fromScale(deployment, { metadata: {}, spec: {}, status: { replicas: 0 } }).spec.replicas).toBe(0);
  });

  it('is not negative', () => {
    const old = toScale(deployment);
    const errors = validateScale({ ...old, spec: { replicas: -1 } });
    expect(errors).toMatchObject([{ field: 'spec.replicas', reason: 'FieldValueInvalid' }]);
  });
});
