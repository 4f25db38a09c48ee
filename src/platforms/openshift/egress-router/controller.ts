import { isConflict, isNotFound } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import {
  deployments as deploymentsResource,
  egressRouters,
  networkAttachmentDefinitions,
} from '../../../client/resources.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { joinKey, keyOf, type KubeObject, type ObjectKey } from '../../../objects/meta.ts';
import type { Deployment } from '../../../objects/types/apps.generated.ts';
import type { EgressRouter, NetworkAttachmentDefinition } from '../../../objects/types/openshift.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import type { ControllerSpec, KeyLoop, ReconcileResult } from '../../../runtime/key-loop.ts';
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
const defaultResyncMs = 300_000;

/**
 * Makes the NetworkAttachmentDefinition and the Deployment of EgressRouters, as cluster-network-operator does: when one is
 * new or its spec has changed, and every five minutes. It has the operator's collisions too: of two EgressRouters in one
 * namespace, the last one applied has the objects. The status is an addition.
 *
 * @param resyncMs see {@link defaultResyncMs}.
 */
export function egressRouterController(resyncMs: number = defaultResyncMs): ControllerSpec {
  return {
    name,
    eventSource: name,
    queue: 'egress_router',
    where: { serves: egressRouters, work: 'egress routers' },
    build(loop) {
      const reconciler = new EgressRouterReconciler(loop, resyncMs);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class EgressRouterReconciler {
  readonly #context: ControllerContext;
  readonly #resyncMs: number;
  readonly #routers: Informer<EgressRouter>;
  readonly #attachments: Informer<NetworkAttachmentDefinition>;
  readonly #deployments: Informer<Deployment>;
  /** By uid: the spec that was applied last, and when that is due again by the monotonic clock. */
  readonly #applied = new Map<string, { readonly spec: EgressRouter['spec']; readonly dueMs: number }>();

  constructor(loop: KeyLoop, resyncMs: number) {
    this.#context = loop.context;
    this.#resyncMs = resyncMs;

    this.#routers = loop.cache(egressRouters);
    this.#attachments = loop.cache(networkAttachmentDefinitions);
    this.#deployments = loop.cache(deploymentsResource);

    loop.on(this.#routers, ({ kind, object }) => {
      if (kind === 'deleted') this.#applied.delete(object.metadata.uid ?? '');
      return this.#inNamespaceOf(object);
    });
    loop.on(this.#attachments, ({ object }) =>
      object.metadata.name === attachmentName ? this.#inNamespaceOf(object) : [],
    );
    loop.on(this.#deployments, ({ object }) =>
      object.metadata.name === deploymentName ? this.#inNamespaceOf(object) : [],
    );
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const router = this.#routers.cache.get(key);
    if (router === undefined || router.metadata.deletionTimestamp !== undefined) return undefined;
    const { namespace, uid = '' } = router.metadata;
    const others = [...this.#routers.cache.values()]
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.uid !== uid)
      .map(({ metadata }) => metadata.name ?? '')
      .sort();
    try {
      await this.#writeStatus(router, { ...(await this.#apply(router, signal)), others }, signal);
    } catch (error) {
      const failure = errorMessage(error);
      const around = { attachment: undefined, deployment: undefined, others, failure };
      await this.#writeStatus(router, around, signal);
      throw error;
    }
    const dueMs = this.#applied.get(uid)?.dueMs;
    const nowMs = this.#context.clock.monotonic();
    return dueMs === undefined ? undefined : { requeueAfterMs: Math.max(1, dueMs - nowMs) };
  }

  /** All of a namespace, since no two may have the same address. */
  #inNamespaceOf({ metadata: { namespace } }: KubeObject): ObjectKey[] {
    return [...this.#routers.cache.values()]
      .filter(({ metadata }) => metadata.namespace === namespace)
      .map(keyOf);
  }

  /** Applies what is due. @returns the objects as they are then. */
  async #apply(
    router: EgressRouter,
    signal: AbortSignal,
  ): Promise<Pick<RouterSurroundings, 'attachment' | 'deployment'>> {
    const { clients, clock } = this.#context;
    const { namespace = '', uid = '' } = router.metadata;
    const present = {
      attachment: this.#attachments.cache.get(joinKey(namespace, attachmentName)),
      deployment: this.#deployments.cache.get(joinKey(namespace, deploymentName)),
    };
    const last = this.#applied.get(uid);
    const wanted = routerObjects(router);
    if (wanted === undefined) return present;
    if (last !== undefined && last.dueMs > clock.monotonic() && jsonEqual(last.spec, router.spec))
      return present;
    const options = { fieldManager: name, force: true, signal };
    const attachment = await clients.for(networkAttachmentDefinitions).applyPatch(wanted.attachment, options);
    const deployment = await clients.for(deploymentsResource).applyPatch(wanted.deployment, options);
    this.#applied.set(uid, { spec: router.spec, dueMs: clock.monotonic() + this.#resyncMs });
    return { attachment, deployment };
  }

  async #writeStatus(router: EgressRouter, around: RouterSurroundings, signal: AbortSignal): Promise<void> {
    const { clients, clock } = this.#context;
    const conditions = routerConditions(router, around, clock.now());
    if (jsonEqual(router.status?.conditions, conditions)) return;
    const { namespace = '', name: own = '', resourceVersion } = router.metadata;
    const patch = { metadata: { resourceVersion }, status: { conditions } };
    try {
      await clients.for(egressRouters).mergePatch(namespace, own, patch, { subresource: 'status', signal });
    } catch (error) {
      // The newer version is reconciled again.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}
