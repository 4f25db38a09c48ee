import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { badRequest, methodNotAllowed, notFound } from '../../objects/status-errors.ts';
import { admitEviction } from '../../registry/policy/eviction.ts';

import { deleteObject } from '../rest/delete.ts';
import type { CheckedDeleteOptions } from '../rest/options/delete-options.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { responderTo } from '../rest/responder.ts';
import { type ServerCore } from '../rest/server-core.ts';
import { listPrefix, objectKey, type StoredObject } from '../storage/storage.ts';
import { admitPosted } from './admit.ts';
import { isPod } from './pod-binding.ts';
import { readSubresourceBody } from './read-body.ts';

const kind = { group: 'policy', version: 'v1', kind: 'Eviction', schema: 'io.k8s.api.policy.v1.Eviction' };

/** Serves `POST pods/<name>/eviction`: deletes a Pod if its disruption budget allows it (`kubectl drain`). */
export const evictionHandler: ResourceHandler = async (core, resource, request, reply) => {
  if (request.method !== 'POST') throw methodNotAllowed(['POST']);
  const respond = responderTo(core, resource, request, reply, 'object');
  const { object: read, options } = await readSubresourceBody(request, reply, kind);
  const { namespace, name } = request.info;
  if (read.metadata.name !== name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const object = await admitPosted(core, resource, request, reply, {
    name,
    object: read,
    body: kind,
    options,
  });
  const pod = core.storage.getForUpdate(objectKey('', 'pods', namespace, name))?.object;
  if (pod === undefined || !isPod(pod)) throw notFound({ group: '', resource: 'pods' }, name);
  const stored = core.storage.list(listPrefix('policy', 'poddisruptionbudgets', namespace)).items;
  const budgets = new Map(stored.map((item) => [item.object, item]));
  const budget = admitEviction(pod, [...budgets.keys()].filter(isBudget));
  const deletion = deleteOptionsOf(object, options.dryRun);
  if (budget !== undefined && !deletion.dryRun) await useBudget(core, budgets.get(budget), budget);
  await deleteObject(core, resource, {
    namespace,
    name,
    user: request.user,
    options: deletion,
    warn: (text) => reply.warn(text),
  });
  await respond.status({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 });
};

async function useBudget(
  core: ServerCore,
  stored: StoredObject | undefined,
  budget: PodDisruptionBudget,
): Promise<void> {
  if (stored === undefined) return;
  const allowed = budget.status.disruptionsAllowed ?? 0;
  const next: PodDisruptionBudget = {
    ...budget,
    metadata: { ...budget.metadata },
    status: { ...budget.status, disruptionsAllowed: allowed - 1 },
  };
  await core.storage.commit([{ key: stored.key, expect: stored.revision, object: next }]);
}

function deleteOptionsOf(eviction: KubeObject, dryRun: boolean): CheckedDeleteOptions {
  const value: object = eviction;
  const given = isRecord(value) && isRecord(value['deleteOptions']) ? value['deleteOptions'] : {};
  const { gracePeriodSeconds, propagationPolicy, dryRun: dry } = given;
  return {
    gracePeriodSeconds: typeof gracePeriodSeconds === 'number' ? gracePeriodSeconds : undefined,
    preconditions: isRecord(given['preconditions']) ? given['preconditions'] : {},
    orphanDependents: undefined,
    propagationPolicy: typeof propagationPolicy === 'string' ? propagationPolicy : undefined,
    dryRun: dryRun || (Array.isArray(dry) && dry.length > 0),
  };
}

function isBudget(object: KubeObject): object is PodDisruptionBudget {
  return object.kind === 'PodDisruptionBudget' && 'spec' in object && 'status' in object;
}
