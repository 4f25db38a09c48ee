import { expect } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { textAt } from '../../src/objects/json.ts';
import type { E2eCluster } from './e2e-cluster.ts';
import { runDeployment } from './service-jig.ts';

/** A Service, and the Pods that answer with their names behind it. */
export interface Hostnames {
  readonly pods: readonly string[];
  readonly clusterIP: string;
}

/** `StartServeHostnameService` of test/e2e/network/service.go. */
export async function serveHostnames(
  cluster: E2eCluster,
  namespace: string,
  service: { name: string; spec?: JsonRecord; labels?: JsonRecord; replicas?: number },
): Promise<Hostnames> {
  const { name, spec = {}, labels = {}, replicas = 3 } = service;
  const services = cluster.resource('services', namespace);
  await services.create({
    metadata: { name, labels },
    spec: { ports: [{ port: 80, targetPort: 9376, protocol: 'TCP' }], selector: { name }, ...spec },
  });
  const pods = await runDeployment(cluster, namespace, name, { name }, replicas);
  expect(pods).toHaveLength(replicas);
  const clusterIP = textAt(await services.get(name), 'spec', 'clusterIP');
  expect(clusterIP).not.toBe('');
  return { pods, clusterIP };
}

/** `StopServeHostnameService`. */
export async function stopServing(cluster: E2eCluster, namespace: string, name: string): Promise<void> {
  await cluster.resource('deployments', namespace).delete(name);
  await cluster.resource('services', namespace).delete(name);
}
