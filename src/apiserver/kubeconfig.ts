import { stringify } from 'yaml';

/** The names of the cluster, user and context in a kubeconfig that the server writes. */
const name = 'servicenet';

/** A kubeconfig (YAML) for one server, its authority and one bearer token. */
export function kubeconfig(access: {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: access.url,
          'certificate-authority-data': Buffer.from(access.ca).toString('base64'),
        },
      },
    ],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    'current-context': name,
  });
}
