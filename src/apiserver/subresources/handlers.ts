import type { ServiceAccountTokens } from '../authentication/service-account-tokens.ts';
import type { Handler } from '../http/exchange.ts';
import type { SpecialHandlers } from '../rest/dispatch.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { reviewHandler } from '../authorization/reviews/handler.ts';
import { reviewKinds, type ReviewSources } from '../authorization/reviews/reviews.ts';
import { admitConnection } from './admit.ts';
import { evictionHandler } from './eviction.ts';
import { bindingHandler } from './pod-binding.ts';
import { scaleHandler } from './scale.ts';
import { tokenRequestHandler } from './token-request.ts';
import type { KubeletAccess } from './kubelet.ts';
import { logHandler } from './pod-log.ts';
import { withoutUpgrade } from './pod-streams.ts';
import { componentStatusHandler } from './virtual.ts';

/** What the special handlers need beyond the store. */
export interface SpecialSources {
  readonly reviews: ReviewSources;
  readonly serviceAccountTokens: ServiceAccountTokens;
  /** Serves `services/proxy`, `pods/proxy` and `nodes/proxy`. */
  readonly proxy: Handler;
  /** The connection to kubelets; undefined if Pods are objects only. */
  readonly kubelets: KubeletAccess | undefined;
}

/** The handlers of subresources that are no part of their object, and of reviews. */
export function specialHandlers(sources: SpecialSources): SpecialHandlers {
  const proxy: ResourceHandler = async (core, _resource, request, reply) => {
    await admitConnection(core, request, reply);
    await sources.proxy(request, reply);
  };
  const stream = withoutUpgrade(sources.kubelets);
  const handlers = new Map<string, ResourceHandler>([
    ['/services/proxy', proxy],
    ['/pods/proxy', proxy],
    ['/nodes/proxy', proxy],
    ['/pods/binding', bindingHandler],
    ['/bindings/', bindingHandler],
    ['/componentstatuses/', componentStatusHandler],
    ['/pods/eviction', evictionHandler],
    ['/pods/exec', stream],
    ['/pods/attach', stream],
    ['/pods/portforward', stream],
    ['/pods/log', logHandler(sources.kubelets)],
    ['/serviceaccounts/token', tokenRequestHandler(sources.serviceAccountTokens)],
    ['scale', scaleHandler],
    ['/replicationcontrollers/scale', scaleHandler],
    ['apps/deployments/scale', scaleHandler],
    ['apps/replicasets/scale', scaleHandler],
    ['apps/statefulsets/scale', scaleHandler],
  ]);
  for (const [name, { review }] of reviewKinds)
    handlers.set(`${name}/`, reviewHandler(review, sources.reviews));
  return handlers;
}
