import type { IPFamily } from '../../objects/address.ts';
import { slicesWithoutPods } from '../../objects/endpoints.ts';
import { joinKey, type ObjectKey } from '../../objects/key.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';

const namespace = 'kube-system';
const name = 'servicenet-router';

/**
 * The Service of type LoadBalancer where clients of a router come in, for one that runs in no Pod.
 *
 * @param families of the cluster, the first one first.
 * @param addresses where the router answers.
 * @param ports where it answers there.
 */
export function routerServiceObjects(
  families: readonly IPFamily[],
  addresses: readonly string[],
  { http, https }: { readonly http: number; readonly https: number },
): { readonly key: ObjectKey; readonly service: Service; readonly slices: readonly EndpointSlice[] } {
  const labels = { 'app.kubernetes.io/name': name };
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels },
    spec: {
      type: 'LoadBalancer',
      ipFamilies: [...families],
      ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: http },
        { name: 'https', protocol: 'TCP', port: 443, targetPort: https },
      ],
    },
    status: {},
  };
  const slices = slicesWithoutPods({ name, namespace, labels }, 'servicenet-router', families, addresses, [
    { name: 'http', protocol: 'TCP', port: http },
    { name: 'https', protocol: 'TCP', port: https },
  ]);
  return { key: joinKey(namespace, name), service, slices };
}
