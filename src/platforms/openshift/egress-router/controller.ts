import { isConflict, isNotFound } from '../../../client/errors.ts';
import { egressRouters, networkAttachmentDefinitions } from '../../../client/resources.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { joinKey, keyOf, type ObjectKey } from '../../../objects/meta.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { EgressRouter } from '../../../objects/types/openshift.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import { Controller } from '../../../runtime/key-loop.ts';
import { whereServed } from '../../../runtime/other-implementations.ts';
import { deployments as deploymentsResource } from '../../../client/resources.ts';
import {
  attachmentName,
  deploymentName,
  routerConditions,
  type RouterSurroundings,
  routerObjects,
} from './plan.ts';
import { errorMessage } from '../../../objects/status.ts';

const name = 'egress-router-controller';

/** Milliseconds between two applications of the same objects (`ResyncPeriod`): nothing else brings back what was deleted. */
const resyncPeriod = 300_000;

/**
 * Makes the NetworkAttachmentDefinition and the Deployment of EgressRouters, as cluster-network-operator does: when one is
 * new or its spec has changed, and every five minutes. It has the operator's collisions too: of two EgressRouters in one
 * namespace, the last one applied has the objects. The status is an addition.
 *
 * @param resync see {@link resyncPeriod}.
 */
export function egressRouterController(resync: number = resyncPeriod): ControllerDefinition {
  return { name, start: (context) => start(context, resync) };
}

function start(context: ControllerContext, resync: number): readonly Runnable[] {
  const { clock, clients, informers } = context;
  const routers = informers.informer(egressRouters);
  const attachments = informers.informer(networkAttachmentDefinitions);
  const deployments = informers.informer(deploymentsResource);
  const client = clients.for(egressRouters);
  /** By uid: the spec that was applied last, and when that is due again by the monotonic clock. */
  const applied = new Map<string, { readonly spec: EgressRouter['spec']; readonly due: number }>();

  /** Applies what is due. @returns the objects as they are then. */
  const apply = async (
    router: EgressRouter,
    signal: AbortSignal,
  ): Promise<Pick<RouterSurroundings, 'attachment' | 'deployment'>> => {
    const { namespace = '', uid = '' } = router.metadata;
    const present = {
      attachment: attachments.cache.get(joinKey(namespace, attachmentName)),
      deployment: deployments.cache.get(joinKey(namespace, deploymentName)),
    };
    const last = applied.get(uid);
    const wanted = routerObjects(router);
    if (wanted === undefined) return present;
    if (last !== undefined && last.due > clock.monotonic() && jsonEqual(last.spec, router.spec))
      return present;
    const options = { fieldManager: name, force: true, signal };
    const attachment = await clients.for(networkAttachmentDefinitions).applyPatch(wanted.attachment, options);
    const deployment = await clients.for(deploymentsResource).applyPatch(wanted.deployment, options);
    applied.set(uid, { spec: router.spec, due: clock.monotonic() + resync });
    return { attachment, deployment };
  };

  const say = async (
    router: EgressRouter,
    around: RouterSurroundings,
    signal: AbortSignal,
  ): Promise<void> => {
    const conditions = routerConditions(router, around, clock.now());
    if (jsonEqual(router.status?.conditions, conditions)) return;
    const { namespace = '', name: own = '', resourceVersion } = router.metadata;
    const patch = { metadata: { resourceVersion }, status: { conditions } };
    try {
      await client.mergePatch(namespace, own, patch, { subresource: 'status', signal });
    } catch (error) {
      // The newer version is reconciled again.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  };

  const controller = new Controller({
    name: 'egress_router',
    context,
    waitFor: [routers, attachments, deployments],
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const router = routers.cache.get(key);
      if (router === undefined || router.metadata.deletionTimestamp !== undefined) return undefined;
      const { namespace, uid = '' } = router.metadata;
      const others = [...routers.cache.values()]
        .filter(({ metadata }) => metadata.namespace === namespace && metadata.uid !== uid)
        .map(({ metadata }) => metadata.name ?? '')
        .sort();
      try {
        await say(router, { ...(await apply(router, signal)), others }, signal);
      } catch (error) {
        const failure = errorMessage(error);
        await say(router, { attachment: undefined, deployment: undefined, others, failure }, signal);
        throw error;
      }
      const due = applied.get(uid)?.due;
      return due === undefined ? undefined : { requeueAfter: Math.max(1, due - clock.monotonic()) };
    },
  });
  /** All of a namespace, since no two may have the same address. */
  const touch = ({ metadata: { namespace } }: KubeObject): void => {
    for (const router of routers.cache.values()) {
      if (router.metadata.namespace === namespace) controller.enqueue(keyOf(router));
    }
  };
  routers.addHandler({
    added: touch,
    updated: touch,
    deleted: (router) => {
      applied.delete(router.metadata.uid ?? '');
      touch(router);
    },
  });
  const ifNamed =
    (wanted: string) =>
    (object: KubeObject): void => {
      if (object.metadata.name === wanted) touch(object);
    };
  const ofAttachment = ifNamed(attachmentName);
  attachments.addHandler({ added: ofAttachment, updated: ofAttachment, deleted: ofAttachment });
  const ofDeployment = ifNamed(deploymentName);
  deployments.addHandler({ added: ofDeployment, updated: ofDeployment, deleted: ofDeployment });
  return [
    whereServed(context, {
      resource: egressRouters,
      work: 'egress routers',
      runnables: [controller],
    }),
  ];
}
