import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import type { E2eCluster } from './e2e-cluster.ts';
import { podUntil } from './service-jig.ts';

/** The Pods of {@link twoPods}, as endpoints refer to them. */
interface TwoPods {
  readonly reference1: JsonRecord;
  readonly reference2: JsonRecord;
  readonly ip1: string;
  readonly ip2: string;
}

/**
 * What the e2e tests of both controllers of endpoints make: two Pods with a named port of different numbers, a Service
 * `example-int-port` of the first, and a Service `example-named-port` of both.
 */
export async function twoPods(cluster: E2eCluster, namespace: string): Promise<TwoPods> {
  const pods = cluster.resource('pods', namespace);
  const services = cluster.resource('services', namespace);
  const pod = async (name: string, ports: readonly JsonRecord[]): Promise<void> => {
    const containers = [{ name: 'container1', image: 'registry.k8s.io/e2e-test-images/nginx:1.15-4', ports }];
    await pods.create({ metadata: { name, labels: { [name]: 'on', shared12: 'on' } }, spec: { containers } });
  };
  await pod('pod1', [{ name: 'example-name', containerPort: 3000 }]);
  await pod('pod2', [
    { name: 'example-name', containerPort: 3001 },
    { name: 'other-port', containerPort: 3002 },
  ]);
  const service = async (name: string, label: string, port: JsonRecord): Promise<void> => {
    const ports = [{ port: 80, protocol: 'TCP', ...port }];
    const spec = { selector: { [label]: 'on' }, publishNotReadyAddresses: true, ports };
    await services.create({ metadata: { name }, spec });
  };
  await service('example-int-port', 'pod1', { name: 'example', targetPort: 3000 });
  await service('example-named-port', 'shared12', { name: 'http', targetPort: 'example-name' });
  const hasAddress = (found: JsonRecord): boolean => listAt(found, 'status', 'podIPs').length > 0;
  const pod1 = await podUntil(cluster, namespace, 'pod1', hasAddress);
  const pod2 = await podUntil(cluster, namespace, 'pod2', hasAddress);
  const reference = (found: JsonRecord): JsonRecord => ({
    ...{ kind: 'Pod', namespace, name: textAt(found, 'metadata', 'name') },
    uid: at(found, 'metadata', 'uid'),
  });
  return {
    reference1: reference(pod1),
    reference2: reference(pod2),
    ip1: textAt(pod1, 'status', 'podIP'),
    ip2: textAt(pod2, 'status', 'podIP'),
  };
}
