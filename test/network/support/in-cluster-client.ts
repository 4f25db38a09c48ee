/** A program of a Pod: contends for a lease with client-node's in-cluster configuration, and reports what it watches. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  ApiException,
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
const name = 'election';

/** Seconds that a lease lasts, and milliseconds between two looks at it. */
const duration = 2;
const period = 500;

/** The lease as it was last seen to change: clocks of others do not count (client-go/tools/leaderelection). */
let observed = { version: '', at: 0 };
let isLeader = false;

/** Takes the lease or keeps it. @throws {ApiException} where another client was faster. */
async function contend(): Promise<boolean> {
  const lease = await leases.readNamespacedLease({ namespace, name }).catch((error: unknown) => {
    if (error instanceof ApiException && error.code === 404) return undefined;
    throw error;
  });
  const version = lease?.metadata?.resourceVersion ?? '';
  if (version !== observed.version) observed = { version, at: performance.now() };
  const holder = lease?.spec?.holderIdentity ?? '';
  if (holder !== '' && holder !== identity && performance.now() < observed.at + duration * 1000) return false;
  const body = lease ?? new V1Lease();
  body.metadata ??= new V1ObjectMeta();
  body.metadata.name = name;
  const spec = new V1LeaseSpec();
  spec.holderIdentity = identity;
  spec.leaseDurationSeconds = duration;
  spec.acquireTime =
    holder === identity ? (lease?.spec?.acquireTime ?? new V1MicroTime()) : new V1MicroTime();
  spec.renewTime = new V1MicroTime();
  spec.leaseTransitions =
    (lease?.spec?.leaseTransitions ?? 0) + (holder === '' || holder === identity ? 0 : 1);
  body.spec = spec;
  if (lease === undefined) await leases.createNamespacedLease({ namespace, body });
  else await leases.replaceNamespacedLease({ name, namespace, body });
  return true;
}

void new Watch(config).watch(
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
for (;;) {
  let leads = false;
  try {
    leads = await contend();
  } catch (error) {
    if (!(error instanceof ApiException) || error.code !== 409) throw error;
  }
  if (leads && !isLeader) console.log(`${identity} leads in ${namespace}`);
  isLeader = leads;
  await delay(period);
}
