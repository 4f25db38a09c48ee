import { isConflict, isNotFound } from '../client/errors.ts';
import { podCertificateRequests } from '../client/resources.ts';
import { keyOf } from '../objects/meta.ts';
import type { PodCertificateRequest } from '../objects/types/certificates.generated.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';

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
