import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, listAt, textAt } from '../../../src/objects/json.ts';
import { StatusError } from '../../../src/objects/status.ts';
import { apiOperations } from '../../support/api-operations.ts';
import { E2eCluster, poll } from '../../support/e2e-cluster.ts';
import { call } from '../../support/test-server.ts';
import type { TypedResource } from '../../support/typed-resource.ts';

/** The calls of e2e tests of ValidatingAdmissionPolicies; titles are theirs. */
export function policies(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  /** No controller writes the status of policies here: watches see the test's own writes only. */
  let quiet: E2eCluster;
  beforeAll(async () => {
    const controllers = ['*', '-validatingadmissionpolicy-status-controller'];
    cluster = shared();
    quiet = await E2eCluster.start({ controllers });
  });
  afterAll(async () => {
    await quiet.stop();
  });

  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const deployments = ['apps', 'deployments'] as const;
  const tooFew = { expression: 'object.spec.replicas > 1' };

  /** The namespace of a test, with the label by which its policies find it: both have the same name. */
  async function markedNamespace(): Promise<string> {
    const name = await cluster.namespace('validating-admission-policy');
    await cluster
      .resource('namespaces')
      .patch(name, 'strategic-merge', { metadata: { labels: { [name]: 'true' } } });
    return name;
  }

  /** What the tests' builder makes of its calls. */
  function policy(
    name: string,
    mark: string,
    [group, resource]: readonly [string, string],
    spec: object,
  ): JsonRecord {
    const rule = { apiGroups: [group], apiVersions: ['v1'], resources: [resource] };
    return {
      metadata: { name },
      spec: {
        matchConstraints: {
          namespaceSelector: { matchLabels: { [mark]: 'true' } },
          resourceRules: [{ operations: ['CREATE', 'UPDATE'], ...rule }],
        },
        ...spec,
      },
    };
  }

  /** Makes a policy and binds it to the namespace; returns the way to undo that. */
  async function bound(namespace: string, spec: object): Promise<() => Promise<void>> {
    const [name, binding] = [`${namespace}.policy.example.com`, `${namespace}.binding.example.com`];
    await cluster.resource('policies').create(policy(name, namespace, deployments, spec));
    await cluster.resource('bindings').create({
      metadata: { name: binding },
      spec: {
        policyName: name,
        matchResources: { namespaceSelector: { matchLabels: { [namespace]: 'true' } } },
        validationActions: ['Deny'],
      },
    });
    return async () => {
      await cluster.resource('bindings').delete(binding);
      await cluster.resource('policies').delete(name);
    };
  }

  function workload(name: string, replicas: number): JsonRecord {
    const labels = { app: 'nginx' };
    const containers = [{ name: 'nginx', image: 'nginx:latest' }];
    return {
      metadata: { name, labels },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    };
  }

  async function createAndDelete(resource: TypedResource, object: JsonRecord): Promise<void> {
    await resource.create(object);
    await resource.delete(textAt(object, 'metadata', 'name'));
  }

  /** Tries to make a Deployment of one until it is refused, then one of as many as are allowed. */
  async function checkDeployments(namespace: string, allowed: number): Promise<void> {
    const resource = cluster.resource('deployments', namespace);
    await poll(async () => {
      try {
        await createAndDelete(resource, workload('marker-deployment', 1));
        return false;
      } catch (error) {
        if (error instanceof StatusError && error.code === 422) return true;
        throw error;
      }
    });
    await createAndDelete(resource, workload('replicated', allowed));
    await createAndDelete(cluster.resource('replicaSets', namespace), workload('non-replicated', 1));
  }

  /** Makes a policy and answers what its type check says. */
  async function typeChecked(object: JsonRecord): Promise<readonly unknown[]> {
    const resource = cluster.resource('policies');
    const name = textAt(await resource.create(object), 'metadata', 'name');
    let made: JsonRecord = {};
    await poll(async () => {
      made = await resource.get(name);
      return at(made, 'status', 'typeChecking') !== undefined;
    });
    await resource.delete(name);
    return listAt(made, 'status', 'typeChecking', 'expressionWarnings');
  }

  const warning = (fieldRef: string, text: string): object => ({
    fieldRef,
    warning: expect.stringContaining(text) as string,
  });
  const compared = "found no matching overload for '_>_' applied to '(int, string)'";

  test('[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should validate against a Deployment', async () => {
    const namespace = await markedNamespace();
    const messageExpression = "'wants replicas > 1, got ' + object.spec.replicas";
    const undo = await bound(namespace, { validations: [{ ...tooFew, messageExpression }] });
    await checkDeployments(namespace, 2);
    await undo();
  });

  test('[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should type check validation expressions', async () => {
    const mark = randomUUID();
    const correct = policy(`${mark}.correct-policy.example.com`, mark, deployments, {
      validations: [tooFew],
    });
    expect(await typeChecked(correct)).toEqual([]);
    const confused = policy(`${mark}.confused-policy.example.com`, mark, deployments, {
      validations: [
        {
          expression: "object.spec.replicas > '1'",
          messageExpression: "'wants replicas > 1, got ' + object.spec.replicas",
        },
      ],
    });
    expect(await typeChecked(confused)).toEqual([
      warning('spec.validations[0].expression', compared),
      warning(
        'spec.validations[0].messageExpression',
        "found no matching overload for '_+_' applied to '(string, int)'",
      ),
    ]);
  });

  test('[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should allow expressions to refer variables.', async () => {
    const namespace = await markedNamespace();
    const undo = await bound(namespace, {
      variables: [
        { name: 'replicas', expression: 'object.spec.replicas' },
        { name: 'oddReplicas', expression: 'variables.replicas % 2 == 1' },
      ],
      validations: [{ expression: 'variables.replicas > 1' }, { expression: 'variables.oddReplicas' }],
    });
    await checkDeployments(namespace, 3);
    await undo();
  });

  /** `crontabExampleCRD`. */
  function cronTabs(group: string): JsonRecord {
    const spec = {
      type: 'object',
      properties: { cronSpec: { type: 'string' }, image: { type: 'string' }, replicas: { type: 'integer' } },
    };
    const openAPIV3Schema = { type: 'object', properties: { spec } };
    return {
      metadata: { name: `crontabs.${group}` },
      spec: {
        group,
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
        scope: 'Namespaced',
        names: { plural: 'crontabs', singular: 'crontab', kind: 'CronTab', shortNames: ['ct'] },
      },
    };
  }

  test('[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should type check a CRD', async () => {
    const { client } = cluster.server;
    const mark = `e2e-${randomUUID()}`;
    const group = `stable.${mark}`;
    expect((await call(client, 'POST', definitions, { body: cronTabs(group) })).status).toBe(201);
    await poll(async () => (await call(client, 'GET', `/openapi/v3/apis/${group}/v1`)).status === 200);
    const crontabs = [group, 'crontabs'] as const;
    const correct = policy(`${mark}.correct-crd-policy.example.com`, mark, crontabs, {
      validations: [tooFew],
    });
    expect(await typeChecked(correct)).toEqual([]);
    const confused = policy(`${mark}.confused-crd-policy.example.com`, mark, crontabs, {
      validations: [
        { expression: "object.spec.replicas > '1'" },
        { expression: 'object.spec.maxRetries < 10' },
      ],
    });
    expect(await typeChecked(confused)).toEqual([
      warning('spec.validations[0].expression', compared),
      warning('spec.validations[1].expression', "undefined field 'maxRetries'"),
    ]);
    expect((await call(client, 'DELETE', `${definitions}/crontabs.${group}`)).status).toBe(200);
  });

  test('[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should support ValidatingAdmissionPolicy API operations', async () => {
    const objects = [1, 2, 3].map(() => {
      const { spec } = policy('', 'mark', deployments, { validations: [tooFew] });
      return { metadata: { generateName: 'e2e-policy-' }, spec };
    });
    await apiOperations(quiet, { kind: 'policies', namespace: undefined, objects });
  });

  test('[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should support ValidatingAdmissionPolicyBinding API operations', async () => {
    const objects = [1, 2, 3].map(() => ({
      metadata: { generateName: 'e2e-binding-' },
      spec: { policyName: 'replicalimit-policy.example.com', validationActions: ['Deny'] },
    }));
    await apiOperations(quiet, { kind: 'bindings', namespace: undefined, objects });
  });
}
