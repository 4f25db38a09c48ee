import type { ClientRequest } from 'node:http';
import { goQuote } from '../../objects/go-text.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { listAt, textAt } from '../../objects/read.ts';
import { StatusError } from '../../objects/status.ts';
import { badRequest, notFound, plainError } from '../../objects/status-errors.ts';
import type { ApiRequest } from '../http/exchange.ts';
import type { CertificatePair } from '../pki/certificates.ts';
import { describeDialFailure } from '../proxy/backend.ts';
import { type DialPod, openRequest } from '../proxy/dial-pod.ts';
import { kubeletOf, type KubeletTarget } from '../proxy/endpoint-resolver.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey } from '../storage/storage.ts';

/** The connection to kubelets, and this server's identity there. */
export interface KubeletAccess {
  readonly dialPod: DialPod;
  readonly client: CertificatePair;
}

/** The stored Pod of a request. @throws {StatusError} 404 */
export function podOf(core: ServerCore, { info }: ApiRequest): KubeObject {
  const stored = core.storage.get(objectKey('', 'pods', info.namespace, info.name));
  if (stored === undefined) throw notFound({ group: '', resource: 'pods' }, info.name);
  return stored.object;
}

/** The kubelet of a node by the node's name. @throws {StatusError} 404 or 500 */
export function kubeletNamed(core: ServerCore, nodeName: string): KubeletTarget {
  return kubeletOf(core.storage.get(objectKey('', 'nodes', '', nodeName))?.object, nodeName);
}

/** Begins a request to a kubelet. @throws {StatusError} 500 where it cannot be reached. */
export async function openKubeletRequest(
  { dialPod, client }: KubeletAccess,
  target: KubeletTarget,
  asked: { readonly method: string; readonly path: string; readonly headers: ClientRequestHeaders },
  signal: AbortSignal,
): Promise<ClientRequest> {
  return openRequest(dialPod, { scheme: 'https', ...target, isPod: false }, asked, signal, client);
}

type ClientRequestHeaders = Record<string, string | string[]>;

/** @throws {StatusError} 500 in kube-apiserver's words. */
export function kubeletUnreachable(error: unknown, target: KubeletTarget): never {
  throw plainError(`error dialing backend: ${describeDialFailure(error, target)}`);
}

/**
 * The container of a request (`pkg/registry/core/pod/strategy.go`): the one that is named, or the only one.
 *
 * @throws {StatusError} 400
 */
export function containerOf(pod: KubeObject, wanted: string): string {
  const name = pod.metadata.name ?? '';
  const names = (list: string): string[] =>
    listAt(pod, 'spec', list).map((container) => textAt(container, 'name'));
  const [containers, inits, ephemeral] = [
    names('containers'),
    names('initContainers'),
    names('ephemeralContainers'),
  ];
  if (wanted !== '') {
    if ([...containers, ...inits, ...ephemeral].includes(wanted)) return wanted;
    throw badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  const [only = ''] = containers;
  if (containers.length === 1) return only;
  if (containers.length === 0) throw badRequest(`a container name must be specified for pod ${name}`);
  const init = inits.length === 0 ? '' : ` or one of the init containers: [${inits.join(' ')}]`;
  throw badRequest(
    `a container name must be specified for pod ${name}, choose one of: [${containers.join(' ')}]${init}`,
  );
}

/** The node of a Pod; "" for one that is on none. */
export function nodeNameOf(pod: KubeObject): string {
  return textAt(pod, 'spec', 'nodeName');
}

/** 501 with the reason why there are no logs, streams and ports. */
export function noContainer({ resource, subresource, name }: ApiRequest['info']): StatusError {
  return new StatusError(
    501,
    'NotImplemented',
    `${resource}/${subresource}: Pods are simulated here, there is no container behind ${goQuote(name)}`,
    { details: { name, kind: resource } },
  );
}
