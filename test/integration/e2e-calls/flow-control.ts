import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { apiOperations } from '../../support/api-operations.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';
import { call } from '../../support/test-server.ts';
import type { TypedResource } from '../../support/typed-resource.ts';

/** The calls of e2e tests of API priority and fairness; titles are theirs. */
export function flowControl(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const path = '/apis/flowcontrol.apiserver.k8s.io/v1';
  const conditions = (object: unknown): string[] =>
    listAt(object, 'status', 'conditions').map((each) => textAt(each, 'type'));

  /** What the tests do with the spec and with `/status`. */
  const changes =
    (plural: string, patch: JsonRecord, spec: (object: JsonRecord) => JsonRecord, at: readonly string[]) =>
    async (resource: TypedResource, made: JsonRecord): Promise<void> => {
      const name = textAt(made, 'metadata', 'name');
      const patched = await resource.patch(name, 'merge', { spec: patch });
      const updated = await resource.retryOnConflict(name, (object) => ({ ...object, spec: spec(object) }));
      const values = [patched, updated].map((object) => numberAt(object, 'spec', ...at));
      const generations = [made, patched, updated].map((object) =>
        numberAt(object, 'metadata', 'generation'),
      );
      expect([values, generations]).toEqual([at.length === 1 ? [9999, 9000] : [4, 6], [1, 2, 3]]);
      // The dynamic client reads JSON.
      const read = await call(cluster.server.client, 'GET', `${path}/${plural}/${name}/status`);
      expect(textAt(read.body, 'metadata', 'uid')).toBe(textAt(made, 'metadata', 'uid'));
      const failed = { type: 'PatchStatusFailed', status: 'False', reason: 'e2e' };
      const marked = await resource.patch(name, 'merge', { status: { conditions: [failed] } }, 'status');
      expect(conditions(marked)).toEqual(['PatchStatusFailed']);
      const second = { type: 'StatusUpdateFailed', status: 'False', reason: 'E2E', message: 'by a test' };
      const written = await resource.retryOnConflict(
        name,
        (object) => ({
          ...object,
          status: { conditions: [...listAt(object, 'status', 'conditions'), second] },
        }),
        'status',
      );
      expect(conditions(written)).toEqual(['PatchStatusFailed', 'StatusUpdateFailed']);
      expect(numberAt(written, 'metadata', 'generation')).toBe(3);
    };

  test('[sig-api-machinery] API priority and fairness should support FlowSchema API operations', async () => {
    const spec = {
      matchingPrecedence: 10_000,
      priorityLevelConfiguration: { name: 'global-default' },
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'example-e2e-non-existent-user' } }],
          nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        },
      ],
    };
    const object = { metadata: { generateName: 'e2e-example-fs-' }, spec };
    const update = () => ({ ...spec, matchingPrecedence: 9000 });
    const changeStatus = changes('flowschemas', { matchingPrecedence: 9999 }, update, ['matchingPrecedence']);
    const objects = [object, object, object];
    await apiOperations(cluster, { kind: 'flowSchemas', namespace: undefined, objects, changeStatus });
  });

  test('[sig-api-machinery] API priority and fairness should support PriorityLevelConfiguration API operations', async () => {
    const limited = (nominalConcurrencyShares: number) => ({
      type: 'Limited',
      limited: { nominalConcurrencyShares, limitResponse: { type: 'Reject' } },
    });
    const object = { metadata: { generateName: 'e2e-example-pl-' }, spec: limited(2) };
    const shares = ['limited', 'nominalConcurrencyShares'];
    const patch = { limited: { nominalConcurrencyShares: 4 } };
    const changeStatus = changes('prioritylevelconfigurations', patch, () => limited(6), shares);
    const objects = [object, object, object];
    await apiOperations(cluster, { kind: 'priorityLevels', namespace: undefined, objects, changeStatus });
  });
}
