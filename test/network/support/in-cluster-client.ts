/** A program of a Pod: leads an election with client-node's in-cluster configuration, then reports what it watches. */
import {
  CoordinationV1Api,
  KubeConfig,
  V1Lease,
  V1LeaseSpec,
  V1MicroTime,
  V1ObjectMeta,
  Watch,
} from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromCluster();
const [{ namespace = '' } = {}] = config.getContexts();
const identity = process.env['HOSTNAME'] ?? '';
const leases = config.makeApiClient(CoordinationV1Api);

const body = new V1Lease();
body.metadata = new V1ObjectMeta();
body.metadata.name = 'election';
body.spec = new V1LeaseSpec();
body.spec.holderIdentity = identity;
body.spec.leaseDurationSeconds = 15;
body.spec.acquireTime = new V1MicroTime();
await leases.createNamespacedLease({ namespace, body });
console.log(`${identity} leads in ${namespace}`);

await new Watch(config).watch(
  `/api/v1/namespaces/${namespace}/configmaps`,
  {},
  (phase, object: { metadata: { name: string } }) => {
    console.log(phase, object.metadata.name);
  },
  (error: unknown) => {
    console.log('the watch has ended', error);
    process.exit(1);
  },
);
