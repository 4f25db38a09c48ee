import { isAlreadyExists, isNotFound, isNamespaceTerminating, isConflict } from '../client/errors.ts';
import { namespaces, configMaps, clusterTrustBundles, podCertificateRequests } from '../client/resources.ts';
import { joinKey, keyOf } from '../objects/meta.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';
import type { ConfigMap } from '../objects/types/core.generated.ts';
import { createHash } from 'node:crypto';
import type { ClusterTrustBundle, PodCertificateRequest } from '../objects/types/certificates.generated.ts';

const mapName = 'kube-root-ca.crt';
const descriptionAnnotation = 'kubernetes.io/description';
const description =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. ' +
  'No other usage is guaranteed across distributions of Kubernetes clusters.';

/** Drops the content of all other ConfigMaps from the cache. */
function onlyRootCa(map: ConfigMap): ConfigMap {
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
      const maps = loop.cache(configMaps, { transform: onlyRootCa });

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

const signerName = 'kubernetes.io/kube-apiserver-serving';

/** The bundle's name: the signer's, and the first 12 bytes of the hash of the bundle. */
function servingBundleName(rootCa: string): string {
  const hash = createHash('sha256').update(rootCa).digest('hex').slice(0, 24);
  return `${signerName.replaceAll('/', ':')}:${hash}`;
}

/** Drops the certificates of all other signers from the cache. */
function onlyServing(bundle: ClusterTrustBundle): ClusterTrustBundle {
  if (bundle.spec.signerName === signerName) return bundle;
  return { metadata: bundle.metadata, spec: { trustBundle: '' } };
}

/**
 * Publishes the authority of the API server's certificate as a ClusterTrustBundle, and deletes those of earlier ones
 * (kube-controller-manager's `kube-apiserver-serving-clustertrustbundle-publisher-controller`,
 * `pkg/controller/certificates/clustertrustbundlepublisher`).
 *
 * @param rootCa PEM of the API server's CA.
 */
export function trustBundlePublisherController(rootCa: string): ControllerSpec {
  const name = servingBundleName(rootCa);
  return {
    name: 'kube-apiserver-serving-clustertrustbundle-publisher-controller',
    eventSource: 'kube-apiserver-serving-clustertrustbundle-publisher',
    queue: 'ca_cert_publisher_cluster_trust_bundles',
    workers: 1,
    build(loop) {
      const client = loop.context.clients.for(clusterTrustBundles);
      const bundles = loop.cache(clusterTrustBundles, { transform: onlyServing });

      loop.on(bundles, ({ object }) => (object.spec.signerName === signerName ? [name] : []));
      loop.enqueue(name);

      return async (_key, signal) => {
        const present = bundles.cache.get(name);
        const spec = { signerName, trustBundle: rootCa };
        if (present === undefined) {
          try {
            await client.create({ metadata: { name }, spec }, { signal });
          } catch (error) {
            if (!isAlreadyExists(error)) throw error;
          }
        } else if (present.spec.trustBundle !== rootCa) {
          await client.replace({ ...present, spec }, { signal });
        }
        for (const { metadata, spec: other } of [...bundles.cache.values()]) {
          if (other.signerName !== signerName || metadata.name === name) continue;
          try {
            await client.delete('', metadata.name ?? '', { signal });
          } catch (error) {
            if (!isNotFound(error)) throw error;
          }
        }
        return undefined;
      };
    },
  };
}

/** All that happens to a request happens sooner (`cmd/kube-controller-manager/app/certificates.go`). */
const lifetimeMs = 15 * 60_000;

/** Drops what requests and answers say from the cache. */
function withoutContent({ metadata }: PodCertificateRequest): PodCertificateRequest {
  return { metadata, spec: nothing, status: {} };
}

const nothing = {
  ...{ signerName: '', podName: '', podUID: '', serviceAccountName: '', serviceAccountUID: '' },
  ...{ nodeName: '', nodeUID: '', stubPKCS10Request: '' },
};

/**
 * Deletes PodCertificateRequests that are older than a quarter of an hour, whatever became of them
 * (kube-controller-manager's `podcertificaterequest-cleaner-controller`, `pkg/controller/certificates/cleaner`).
 */
export const podCertificateCleanerController: ControllerSpec = {
  name: 'podcertificaterequest-cleaner-controller',
  eventSource: 'podcertificaterequestcleaner',
  queue: 'podcertificaterequest_cleaner',
  workers: 1,
  build(loop) {
    const { clients, clock } = loop.context;
    const client = clients.for(podCertificateRequests);
    const requests = loop.cache(podCertificateRequests, { transform: withoutContent });

    loop.on(requests, ({ kind, object }) => (kind === 'added' ? [keyOf(object)] : []));

    return async (key, signal) => {
      const request = requests.cache.get(key);
      if (request === undefined) return undefined;
      const { namespace = '', name = '', uid = '', creationTimestamp = '' } = request.metadata;
      const waitMs = Date.parse(creationTimestamp) + lifetimeMs - clock.now();
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      try {
        await client.delete(namespace, name, { preconditions: { uid }, signal });
      } catch (error) {
        // Another request has its name.
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
      return undefined;
    };
  },
};
