import type { Pod } from '../../objects/types/core.generated.ts';
import { type KubeObject, type ObjectMeta, replacedCondition, transitionTime } from '../../objects/meta.ts';
import { badRequest, conflict, methodNotAllowed, notFound, plainError } from '../../objects/status.ts';
import { aggregateText } from '../../registry/validation/field-errors.ts';
import { bindPod, type PostedBinding, validateBinding } from '../../registry/core/pod/admission.ts';
import { responderTo } from '../rest/responder.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { matchNamespace } from '../rest/system-fields.ts';
import { preconditionFailed } from '../rest/commit.ts';
import { objectKey, PreconditionError, listPrefix, type StoredObject } from '../storage/storage.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import { admitPosted, readSubresourceBody } from './admit.ts';
import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import { isRecord } from '../../objects/json.ts';
import { admitEviction } from '../../registry/policy/eviction.ts';
import { deleteObject } from '../rest/delete.ts';
import type { CheckedDeleteOptions } from '../rest/options.ts';

const kind = { group: '', version: 'v1', kind: 'Binding', schema: 'io.k8s.api.core.v1.Binding' };

/** Serves `POST pods/<name>/binding` and `POST bindings`: puts a Pod on a node. */
export const bindingHandler: ResourceHandler = async (core, resource, request, reply) => {
  if (request.method !== 'POST') throw methodNotAllowed(['POST']);
  const respond = responderTo(core, resource, request, reply, 'object');
  const { object: read, options } = await readSubresourceBody(request, reply, kind);
  const { namespace } = request.info;
  matchNamespace(read, namespace);
  const name = request.info.name === '' ? (read.metadata.name ?? '') : request.info.name;
  if ((read.metadata.name ?? '') !== name) {
    throw badRequest('name in URL does not match name in Binding object');
  }
  const object = await admitPosted(core, resource, request, reply, {
    name,
    object: read,
    body: kind,
    options,
  });
  const binding: PostedBinding = object;
  const errors = validateBinding(binding);
  // These errors reach the client as they are: they never become a Status of their own.
  if (errors.length > 0) throw plainError(aggregateText(errors));
  // For a POST to `bindings`, which is no subresource, kube-apiserver leaves the name of the Pod out.
  const meant = request.info.subresource === '' ? {} : binding.metadata;
  await bind(core, namespace, name, { binding, meant, dryRun: options.dryRun });
  await respond.status({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 });
};

/** How to bind a Pod. */
interface Assignment {
  readonly binding: PostedBinding;
  /** The uid and the resourceVersion that the Pod must have, where they are named. */
  readonly meant: ObjectMeta;
  readonly dryRun: boolean;
}

async function bind(
  core: ServerCore,
  namespace: string,
  name: string,
  { binding, meant, dryRun }: Assignment,
): Promise<void> {
  for (;;) {
    const stored = core.storage.getForUpdate(objectKey('', 'pods', namespace, name));
    if (stored === undefined || !isPod(stored.object)) throw notFound({ group: '', resource: 'pods' }, name);
    checkMeant(stored.object, meant);
    const bound = bindPod(stored.object, binding, timestamp(core.now()));
    if (dryRun) return;
    try {
      await core.storage.commit([{ key: stored.key, expect: stored.revision, object: bound }]);
      return;
    } catch (error) {
      // The Pod changed in between: decide again.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }
}

/** @throws {StatusError} 409 when the Pod is another one, or another version of it, than the binding names. */
function checkMeant({ metadata }: Pod, meant: ObjectMeta): void {
  const { namespace = '', name = '' } = metadata;
  const check = (field: 'UID' | 'ResourceVersion', wanted = '', found = ''): void => {
    if (wanted === '' || wanted === found) return;
    const why = preconditionFailed(`/registry/pods/${namespace}/${name}`, field, wanted, found);
    throw conflict({ group: '', resource: 'pods' }, name, why);
  };
  check('UID', meant.uid, metadata.uid);
  check('ResourceVersion', meant.resourceVersion, metadata.resourceVersion);
}

/** True for a decoded Pod. */
export function isPod(object: KubeObject): object is Pod {
  return object.kind === 'Pod' && 'spec' in object && 'status' in object;
}

const evictionGvk = {
  group: 'policy',
  version: 'v1',
  kind: 'Eviction',
  schema: 'io.k8s.api.policy.v1.Eviction',
};

/** Serves `POST pods/<name>/eviction`: deletes a Pod if its disruption budget allows it (`kubectl drain`). */
export const evictionHandler: ResourceHandler = async (core, resource, request, reply) => {
  if (request.method !== 'POST') throw methodNotAllowed(['POST']);
  const respond = responderTo(core, resource, request, reply, 'object');
  // `AcceptsGroupVersion`: kubectl before 1.22 sends the other one.
  const accepted = { ...evictionGvk, alsoVersion: 'v1beta1' };
  const { object: read, options } = await readSubresourceBody(request, reply, accepted);
  const { namespace, name } = request.info;
  if (read.metadata.name !== name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const object = await admitPosted(core, resource, request, reply, {
    name,
    object: read,
    body: evictionGvk,
    options,
  });
  const pod = core.storage.getForUpdate(objectKey('', 'pods', namespace, name))?.object;
  if (pod === undefined || !isPod(pod)) throw notFound({ group: '', resource: 'pods' }, name);
  const stored = core.storage.list(listPrefix('policy', 'poddisruptionbudgets', namespace)).items;
  const budgets = new Map(stored.map((item) => [item.object, item]));
  const budget = admitEviction(pod, [...budgets.keys()].filter(isBudget));
  const deletion = deleteOptionsOf(object, options.dryRun);
  if (budget !== undefined && !deletion.dryRun) await useBudget(core, budgets.get(budget), budget, name);
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
  pod: string,
): Promise<void> {
  if (stored === undefined) return;
  const allowed = budget.status.disruptionsAllowed ?? 0;
  const { conditions = [], observedGeneration } = budget.status;
  const used = { type: 'DisruptionAllowed', status: 'False' } as const;
  const condition = {
    ...used,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    lastTransitionTime: transitionTime(conditions, used, core.now()),
    reason: 'InsufficientPods',
    message: '',
  };
  const next: PodDisruptionBudget = {
    ...budget,
    metadata: { ...budget.metadata },
    status: {
      ...budget.status,
      disruptionsAllowed: allowed - 1,
      ...(allowed === 1 ? { conditions: replacedCondition(conditions, condition) } : {}),
      // Tells the disruption controller that the Pod is about to go.
      disruptedPods: { ...budget.status.disruptedPods, [pod]: timestamp(core.now()) },
    },
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
