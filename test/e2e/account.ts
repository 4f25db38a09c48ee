import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Transport } from '../../src/client/transport.ts';
import { listAt, textAt } from '../../src/objects/json.ts';

/** A ServiceAccount, and the Pod that its token is for, if any. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
  readonly pod?: { readonly name: string; readonly uid: string };
}

/**
 * Asks for a token of the account, writes it and the cluster's authority into the directory, and answers the flags
 * with which a process is that account. @throws {StatusError} when there is no such account or Pod (any more).
 */
export async function accountFlags(
  client: Transport,
  kubeconfig: string,
  directory: string,
  { namespace, name, pod }: Account,
): Promise<string[]> {
  const boundObjectRef = pod === undefined ? undefined : { kind: 'Pod', apiVersion: 'v1', ...pod };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const answer = await client.request('POST', path, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { boundObjectRef } },
  });
  const token = textAt(answer.json(), 'status', 'token');
  const [cluster] = listAt(parse(readFileSync(kubeconfig, 'utf8')), 'clusters');
  const authority = Buffer.from(textAt(cluster, 'cluster', 'certificate-authority-data'), 'base64');
  const [tokenFile, authorityFile] = [join(directory, 'token'), join(directory, 'ca.crt')];
  writeFileSync(tokenFile, token, { mode: 0o600 });
  writeFileSync(authorityFile, authority);
  return [
    ...['--server', textAt(cluster, 'cluster', 'server')],
    ...['--token-file', tokenFile, '--certificate-authority', authorityFile],
  ];
}
