import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const deployments = definitionOf('Deployment');
const metadata = { labels: { app: 'a' } };
const template = { metadata, spec: { containers: [{ name: 'c', image: 'x' }] } };
const selector = { matchLabels: { app: 'a' } };

// apis/apps/v1/defaults.go, apis/apps/validation.
describe('a Deployment', () => {
  it('has the defaults of kube-apiserver', () => {
    const { object, errors } = create(deployments, { spec: { selector, template } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: {
        replicas: 1,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
      },
    });
  });

  it('of strategy Recreate has no bounds of a rolling update', () => {
    const { object } = create(deployments, {
      spec: { selector, template, strategy: { type: 'Recreate' } },
    });
    expect(object).toMatchObject({ spec: { strategy: { type: 'Recreate' } } });
    expect(object).not.toHaveProperty('spec.strategy.rollingUpdate');
  });

  it('selects the Pods that it makes, and keeps its selector', () => {
    const other = { matchLabels: { app: 'b' } };
    expect(create(deployments, { spec: { selector: other, template } }).errors).toHaveLength(1);
    const both = { metadata: { labels: { app: 'a', and: 'b' } }, spec: template.spec };
    const { stored } = create(deployments, { spec: { selector, template: both } });
    const changed = update(deployments, stored, {
      ...stored,
      spec: { selector: { matchLabels: { and: 'b' } }, template: both },
    });
    expect(changed.errors.join()).toContain('spec.selector: Invalid value');
  });
});
