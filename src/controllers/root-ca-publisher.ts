import { isAlreadyExists, isNotFound, isNamespaceTerminating } from '../client/errors.ts';
import { namespaces, configMaps } from '../client/resources.ts';
import { joinKey, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import { Controller } from '../runtime/key-loop.ts';
import type { ConfigMap } from '../objects/types/core.generated.ts';

const mapName = 'kube-root-ca.crt';
const descriptionAnnotation = 'kubernetes.io/description';
const description =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. ' +
  'No other usage is guaranteed across distributions of Kubernetes clusters.';

/** Options of {@link rootCaPublisher}. */
export interface RootCaOptions {
  /** PEM of the API server's CA. */
  readonly rootCa: string;
}

/**
 * Maintains the ConfigMap `kube-root-ca.crt` in every namespace (kube-controller-manager's
 * `root-ca-certificate-publisher-controller`).
 */
export function rootCaPublisher({ rootCa }: RootCaOptions): ControllerDefinition {
  return {
    name: 'root-ca-certificate-publisher-controller',
    start: (context) => start(context, rootCa),
  };
}

/** Drops the content of all other ConfigMaps from the cache. */
function onlyOurs(map: ConfigMap): ConfigMap {
  const { annotations: _annotations, labels: _labels, ...metadata } = map.metadata;
  return metadata.name === mapName ? map : { metadata };
}

function start(context: ControllerContext, rootCa: string): readonly Runnable[] {
  const spaces = context.informers.informer(namespaces);
  const maps = context.informers.informer(configMaps, { transform: onlyOurs });
  const client = context.clients.for(configMaps);

  const publish = async (namespace: string, signal: AbortSignal): Promise<void> => {
    const present = maps.cache.get(joinKey(namespace, mapName));
    if (present === undefined) {
      const metadata = { namespace, name: mapName, annotations: { [descriptionAnnotation]: description } };
      await client.create({ metadata, data: { 'ca.crt': rootCa } }, { signal });
      return;
    }
    const { annotations } = present.metadata;
    const data = present.data ?? {};
    // The description is not compared: users may change it.
    const isDescribed = (annotations?.[descriptionAnnotation] ?? '') !== '';
    if (data['ca.crt'] === rootCa && Object.keys(data).length === 1 && isDescribed) return;
    const metadata = {
      ...present.metadata,
      annotations: { ...annotations, [descriptionAnnotation]: description },
    };
    await client.replace({ ...present, metadata, data: { 'ca.crt': rootCa } }, { signal });
  };

  const controller = new Controller({
    name: 'root_ca_cert_publisher',
    context,
    waitFor: [spaces, maps],
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const namespace = spaces.cache.get(key);
      if (namespace === undefined || namespace.status.phase === 'Terminating') return undefined;
      try {
        await publish(key, signal);
      } catch (error) {
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error) && !isNotFound(error)) throw error;
      }
      return undefined;
    },
  });
  spaces.addHandler({
    added: (namespace) => controller.enqueue(keyOf(namespace)),
  });
  const changed = ({ metadata }: { metadata: { name?: string; namespace?: string } }): void => {
    if (metadata.name === mapName) controller.enqueue(metadata.namespace ?? '');
  };
  maps.addHandler({ updated: changed, deleted: changed });
  return [controller];
}
