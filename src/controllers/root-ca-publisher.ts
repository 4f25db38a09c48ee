import { isAlreadyExists, isNotFound, isNamespaceTerminating } from '../client/errors.ts';
import { namespaces, configMaps } from '../client/resources.ts';
import { joinKey, keyOf } from '../objects/meta.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';
import type { ConfigMap } from '../objects/types/core.generated.ts';

const mapName = 'kube-root-ca.crt';
const descriptionAnnotation = 'kubernetes.io/description';
const description =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. ' +
  'No other usage is guaranteed across distributions of Kubernetes clusters.';

/** Drops the content of all other ConfigMaps from the cache. */
function onlyOurs(map: ConfigMap): ConfigMap {
  const { annotations: _annotations, labels: _labels, ...metadata } = map.metadata;
  return metadata.name === mapName ? map : { metadata };
}

/**
 * Maintains the ConfigMap `kube-root-ca.crt` in every namespace (kube-controller-manager's
 * `root-ca-certificate-publisher-controller`).
 *
 * @param rootCa PEM of the API server's CA.
 */
export function rootCaPublisherController(rootCa: string): ControllerSpec {
  return {
    name: 'root-ca-certificate-publisher-controller',
    eventSource: 'root-ca-cert-publisher',
    queue: 'root_ca_cert_publisher',
    build(loop) {
      const client = loop.context.clients.for(configMaps);
      const spaces = loop.cache(namespaces);
      const maps = loop.cache(configMaps, { transform: onlyOurs });

      loop.on(spaces, ({ kind, object }) => (kind === 'added' ? [keyOf(object)] : []));
      loop.on(maps, ({ kind, object: { metadata } }) =>
        kind === 'added' || metadata.name !== mapName ? [] : [metadata.namespace ?? ''],
      );

      const publish = async (namespace: string, signal: AbortSignal): Promise<void> => {
        const present = maps.cache.get(joinKey(namespace, mapName));
        if (present === undefined) {
          const metadata = {
            namespace,
            name: mapName,
            annotations: { [descriptionAnnotation]: description },
          };
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

      return async (key, signal) => {
        const namespace = spaces.cache.get(key);
        if (namespace === undefined || namespace.status.phase === 'Terminating') return undefined;
        try {
          await publish(key, signal);
        } catch (error) {
          if (!isAlreadyExists(error) && !isNamespaceTerminating(error) && !isNotFound(error)) throw error;
        }
        return undefined;
      };
    },
  };
}
