/** The objects that lead to the metrics API, by the names that metrics-server's manifests have. */
import { endpoints, services, inGroup, configMaps } from '../../client/resources.ts';
import { textAt } from '../../objects/read.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { createMissing } from '../create-missing.ts';

type Clients = ControllerContext['clients'];

const name = 'metrics-server';
const namespace = 'kube-system';

/** The address of the server on the control plane. */
export const metricsPort = 10443;

const apiServices = inGroup('apiregistration.k8s.io')('APIService', 'apiservices', ['spec'], {
  namespaced: false,
});
const clusterRoles = inGroup('rbac.authorization.k8s.io')('ClusterRole', 'clusterroles', [], {
  namespaced: false,
});

/** PEM of the authority of the API server's front proxy, where extension API servers look for it. @throws {Error} */
export async function readProxyAuthority(clients: Clients): Promise<string> {
  const map = await clients.for(configMaps).get(namespace, 'extension-apiserver-authentication');
  return textAt(map, 'data', 'requestheader-client-ca-file');
}

/** Creates what is missing: a metrics-server that the user has installed stays. */
export async function createMetricsObjects(clients: Clients, addresses: readonly string[]): Promise<void> {
  const labels = { 'k8s-app': name };
  const ports = [{ name: 'https', protocol: 'TCP', port: 443, targetPort: metricsPort }];
  await createMissing(clients.for(services), {
    metadata: { name, namespace, labels },
    spec: { ports, ipFamilyPolicy: 'PreferDualStack' },
  });
  // Mirrored to EndpointSlices; the API server finds extension API servers by Endpoints.
  await createMissing(clients.for(endpoints), {
    metadata: { name, namespace, labels },
    subsets: [
      {
        addresses: addresses.map((ip) => ({ ip })),
        ports: [{ name: 'https', protocol: 'TCP', port: metricsPort }],
      },
    ],
  });
  const reader = 'rbac.authorization.k8s.io/aggregate-to-';
  await createMissing(clients.for(clusterRoles), {
    metadata: {
      name: 'system:aggregated-metrics-reader',
      labels: {
        ...labels,
        [`${reader}view`]: 'true',
        [`${reader}edit`]: 'true',
        [`${reader}admin`]: 'true',
      },
    },
    ...{ rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list'] }] },
  });
  await createMissing(clients.for(apiServices), {
    metadata: { name: 'v1beta1.metrics.k8s.io', labels },
    ...{
      spec: {
        service: { name, namespace },
        ...{ group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
        // The name in the certificate is that of nodes, and the network is inside this machine.
        insecureSkipTLSVerify: true,
      },
    },
  });
}
