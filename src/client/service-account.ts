import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { EndpointSource } from './transport.ts';

/** What the kubelet mounts into the containers of a Pod. */
const mounted = '/var/run/secrets/kubernetes.io/serviceaccount';

/** What is found there, or in its place in tests. */
interface PodEnvironment {
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
}

/**
 * The API server and the service account of the Pod that this process runs in (client-go's `rest.InClusterConfig`),
 * without client-node, which takes 48 MiB. Undefined outside of Pods, and where there is a kubeconfig, which goes before.
 *
 * @throws {Error} where the authority cannot be read.
 */
export async function serviceAccountSource(
  { variables, folder }: PodEnvironment = { variables: process.env, folder: mounted },
): Promise<EndpointSource | undefined> {
  const {
    KUBECONFIG = '',
    HOME = '',
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
  } = variables;
  const tokenFile = join(folder, 'token');
  const hasKubeconfig = KUBECONFIG !== '' || (HOME !== '' && existsSync(join(HOME, '.kube', 'config')));
  if (hasKubeconfig || !host || !port || !existsSync(tokenFile)) return undefined;
  const ca = await readFile(join(folder, 'ca.crt'));
  return { kind: 'endpoint', url: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`, ca, tokenFile };
}
