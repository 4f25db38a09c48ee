import { isNotFound } from '../../client/errors.ts';
import {
  connectivityChecks,
  endpoints as endpointsResource,
  nodes as nodesResource,
  pods as podsResource,
  services as servicesResource,
} from '../../client/resources.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller } from '../../runtime/controller.ts';
import { whereServed } from '../../runtime/where-served.ts';
import { diagnosticsNamespace, managedBy, wantedChecks } from './checks.ts';

/** Milliseconds in which changes are gathered. */
const gather = 500;
/** The one key of the work queue. */
const everything = 'checks';

const name = 'connectivity-check-controller';

/**
 * Keeps a PodNetworkConnectivityCheck from each Pod with the label `app=network-check-source` to each target, and
 * deletes obsolete ones that it made.
 */
export const connectivityCheckGenerator: ControllerDefinition = { name, start };

function start(context: ControllerContext): readonly Runnable[] {
  const { informers } = context;
  const checks = informers.informer(connectivityChecks);
  const pods = informers.informer(podsResource);
  const nodes = informers.informer(nodesResource);
  const services = informers.informer(servicesResource);
  const endpoints = informers.informer(endpointsResource);
  const client = context.clients.for(connectivityChecks);

  const reconcile = async (_key: string, signal: AbortSignal): Promise<undefined> => {
    const wanted = new Map(
      wantedChecks({
        pods: pods.cache.values(),
        nodes: nodes.cache,
        services: services.cache,
        endpoints: endpoints.cache,
      }).map((check) => [keyOf(check), check]),
    );
    for (const [key, check] of wanted) {
      const present = checks.cache.get(key);
      if (present !== undefined && jsonEqual(present.spec, check.spec)) continue;
      await client.applyPatch(check, { fieldManager: name, force: true, signal });
    }
    for (const check of checks.cache.values()) {
      const { namespace = '', name: own = '', labels, uid } = check.metadata;
      if (namespace !== diagnosticsNamespace || labels?.[managedBy.label] !== managedBy.value) continue;
      if (wanted.has(keyOf(check)) || uid === undefined) continue;
      try {
        await client.delete(namespace, own, { preconditions: { uid }, signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    return undefined;
  };

  const controller = new Controller({
    name: 'connectivity_checks',
    ...{ context, reconcile, workers: 1 },
    waitFor: [checks, pods, nodes, services, endpoints],
  });
  const follow = <T extends KubeObject>(informer: Informer<T>, concerns: (object: T) => boolean): void => {
    const changed = (object: T): void => {
      if (concerns(object)) controller.enqueue(everything, { after: gather });
    };
    informer.addHandler({ added: changed, updated: changed, deleted: changed });
  };
  const inNamespaces = ({ metadata: { namespace = '' } }: KubeObject): boolean =>
    [diagnosticsNamespace, 'default', 'openshift-kube-apiserver', 'openshift-apiserver'].includes(namespace);
  follow(checks, inNamespaces);
  follow(pods, ({ metadata }) => metadata.namespace === diagnosticsNamespace);
  follow(services, inNamespaces);
  follow(endpoints, inNamespaces);
  nodes.addHandler({ added: () => controller.enqueue(everything, { after: gather }) });
  return [
    whereServed(context, {
      resource: connectivityChecks,
      work: 'connectivity checks',
      runnables: [controller],
    }),
  ];
}
