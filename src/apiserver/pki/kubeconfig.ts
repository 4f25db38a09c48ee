/** The names of the cluster, user and context in a kubeconfig that the server writes. */
const name = 'servicenet';

/** A kubeconfig (YAML) for one server, its CA and one bearer token. */
export function kubeconfig(access: {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}): string {
  // Every JSON string is a double-quoted YAML scalar.
  const quoted = (text: string): string => JSON.stringify(text);
  return `apiVersion: v1
kind: Config
clusters:
  - name: ${name}
    cluster:
      server: ${quoted(access.url)}
      certificate-authority-data: ${Buffer.from(access.ca).toString('base64')}
users:
  - name: ${name}
    user:
      token: ${quoted(access.token)}
contexts:
  - name: ${name}
    context:
      cluster: ${name}
      user: ${name}
      namespace: default
current-context: ${name}
`;
}
