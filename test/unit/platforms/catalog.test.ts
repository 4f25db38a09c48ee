import { describe, expect, it, test } from 'vitest';
import type { Transport } from '../../../src/client/transport.ts';
import { loadControllers } from '../../../src/controllers/catalog.ts';
import { selectControllers } from '../../../src/controllers/selection.ts';
import {
  allControllers,
  attachmentsName,
  checkerName,
  localControllers,
  type PlatformSettings,
  remoteControllers,
} from '../../../src/platforms/catalog.ts';
import { InMemoryCloud } from '../../../src/platforms/openshift/cloud-private-ip/cloud.ts';

const nowhere = new Error('nothing is asked before a controller starts');
const transport: Transport = {
  server: 'http://127.0.0.1',
  request: () => Promise.reject(nowhere),
  stream: () => Promise.reject(nowhere),
  close: () => Promise.resolve(),
};
const serviceAllocation = {
  allocation: 'server',
  nodePorts: { first: 30_000, last: 32_767 },
} as const;
const everything: PlatformSettings = {
  transport,
  serviceAllocation,
  rootCa: 'PEM',
  checkPolicyTypes: () => Promise.resolve([]),
  simulation: { count: 1, clusterCidrs: ['10.244.0.0/16'] },
  cloud: new InMemoryCloud(),
  ingressToRoute: true,
};

/** The component of Events of each: those of kube-controller-manager as its users filter by them. */
const eventSources: Readonly<Record<string, string>> = {
  'node-lifecycle-controller': 'node-controller',
  'default-scheduler': 'default-scheduler',
  kubelet: 'kubelet',
  'taint-eviction-controller': 'taint-eviction-controller',
  'deployment-controller': 'deployment-controller',
  'replicaset-controller': 'replicaset-controller',
  'replicationcontroller-controller': 'replication-controller',
  'statefulset-controller': 'statefulset-controller',
  'daemonset-controller': 'daemonset-controller',
  'job-controller': 'job-controller',
  'cronjob-controller': 'cronjob-controller',
  'disruption-controller': 'controllermanager',
  'horizontal-pod-autoscaler-controller': 'horizontal-pod-autoscaler',
  'persistentvolume-binder-controller': 'persistentvolume-controller',
  'endpoints-controller': 'endpoint-controller',
  'endpointslice-controller': 'endpoint-slice-controller',
  'endpointslice-mirroring-controller': 'endpoint-slice-mirroring-controller',
  'namespace-controller': 'namespace-controller',
  'serviceaccount-controller': 'serviceaccount-controller',
  'persistentvolumeclaim-protection-controller': 'pvc-protection-controller',
  'ephemeral-volume-controller': 'ephemeral_volume',
  'persistentvolume-protection-controller': 'pv-protection-controller',
  'service-cidr-controller': 'service-cidr-controller',
  'garbage-collector-controller': 'garbage-collector-controller',
  'podcertificaterequest-cleaner-controller': 'podcertificaterequestcleaner',
  'resourceclaim-controller': 'resource_claim',
  'storage-version-migrator-controller': 'storage-version-migrator-controller',
  'root-ca-certificate-publisher-controller': 'root-ca-cert-publisher',
  'kube-apiserver-serving-clustertrustbundle-publisher-controller':
    'kube-apiserver-serving-clustertrustbundle-publisher',
  'validatingadmissionpolicy-status-controller': 'validatingadmissionpolicy-status',
  'load-balancer-controller': 'servicenet-load-balancer',
  'service-allocation-controller': 'servicenet-service-allocation',
  'egress-ip-controller': 'servicenet-egress-ip',
  'egress-firewall-controller': 'servicenet-egress-firewall',
  'egress-qos-controller': 'servicenet-egress-qos',
  'egress-router-controller': 'egress-router-controller',
  'check-endpoints-controller': 'check-endpoints',
  'connectivity-check-controller': 'connectivity-check-controller',
  'network-attachment-controller': 'servicenet-network-attachment',
  'cloud-private-ip-controller': 'cloud-network-config-controller',
  'ingress-to-route-controller': 'ingress-to-route-controller',
};

describe('every entry of the catalogue', () => {
  test.each(allControllers.map((entry) => [entry.name, entry] as const))(
    '%s makes a controller of that name, with its component of Events',
    async (name, entry) => {
      const [spec] = (await loadControllers([entry]))(everything);
      expect([spec?.name, spec?.eventSource]).toEqual([name, eventSources[name]]);
    },
  );

  test.each(
    allControllers.flatMap(({ name, needs }) => (needs === undefined ? [] : ([[name, needs]] as const))),
  )('%s is not there without the setting %s', async (name, needs) => {
    const entries = allControllers.filter((entry) => entry.name === name);
    const make = await loadControllers(entries);
    expect(make(everything)).toHaveLength(1);
    const { [needs]: _, ...without } = everything;
    expect(make({ ...without, transport })).toEqual([]);
  });

  it('has a name and a queue of its own', async () => {
    const specs = (await loadControllers(allControllers))(everything);
    expect(new Set(specs.map(({ name }) => name)).size).toBe(specs.length);
    expect(new Set(specs.map(({ queue }) => queue)).size).toBe(specs.length);
    expect(specs.map(({ name }) => name)).toEqual(expect.arrayContaining([checkerName, attachmentsName]));
  });
});

describe('the choice', () => {
  const workloads = Object.keys(eventSources).slice(0, 14);
  const cluster = Object.keys(eventSources).slice(14, 27);
  const server = Object.keys(eventSources).slice(27, 30);
  const platform = Object.keys(eventSources).slice(32, 39);
  const names = (known: readonly { readonly name: string }[]): string[] => known.map(({ name }) => name);

  test('of `up` is all, and the audit of its own server only by name', () => {
    const plain = localControllers({ nodes: 0, allocation: 'server', platform: 'kubernetes' });
    const usual = [
      ...cluster,
      ...server,
      ...platform,
      'cloud-private-ip-controller',
      'load-balancer-controller',
    ];
    expect(names(plain)).toEqual([...usual, 'service-allocation-controller']);
    expect(selectControllers(['*'], plain)).toEqual(usual);
    const allocating = localControllers({ nodes: 0, allocation: 'controller', platform: 'kubernetes' });
    expect(selectControllers(['*'], allocating)).toEqual(names(allocating));
  });

  test('of `up` has those of workloads where there are nodes, and of Ingresses where there are Routes', () => {
    const full = localControllers({ nodes: 3, allocation: 'server', platform: 'openshift' });
    expect(names(full)).toEqual([
      ...[...workloads, ...cluster, ...server, ...platform],
      ...['cloud-private-ip-controller', 'ingress-to-route-controller'],
      ...['load-balancer-controller', 'service-allocation-controller'],
    ]);
  });

  test('beside a cluster is what it lacks, and others only by name', () => {
    const known = remoteControllers();
    const usual = ['service-allocation-controller', 'load-balancer-controller'];
    expect(names(known)).toEqual([...usual, ...cluster, ...platform]);
    expect(selectControllers(['*'], known)).toEqual(usual);
    expect(selectControllers(['*', '-load-balancer-controller', 'endpoints-controller'], known)).toEqual([
      'service-allocation-controller',
      'endpoints-controller',
    ]);
  });
});
