import { createHash } from 'node:crypto';
import { isAlreadyExists, isNotFound } from '../client/errors.ts';
import { clusterTrustBundles } from '../client/resources.ts';
import type { ClusterTrustBundle } from '../objects/types/certificates.generated.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';

const signerName = 'kubernetes.io/kube-apiserver-serving';

/** The bundle's name: the signer's, and the first 12 bytes of the hash of the bundle. */
function servingBundleName(rootCa: string): string {
  const hash = createHash('sha256').update(rootCa).digest('hex').slice(0, 24);
  return `${signerName.replaceAll('/', ':')}:${hash}`;
}

/** Drops the certificates of all other signers from the cache. */
function onlyOurs(bundle: ClusterTrustBundle): ClusterTrustBundle {
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
      const bundles = loop.cache(clusterTrustBundles, { transform: onlyOurs });

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
