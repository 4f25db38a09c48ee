/** exec, attach and port-forward of Pods (`pkg/registry/core/pod/rest/subresources.go`). */
import { goQuote } from '../../objects/go-text.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, textAt } from '../../objects/read.ts';
import { StatusError } from '../../objects/status.ts';
import { badRequest } from '../../objects/status-errors.ts';
import type { ApiRequest, UpgradeHandler } from '../http/exchange.ts';
import { forwardUpgrade, upgradeHeaders } from '../proxy/upgrade.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { booleanParameter } from '../rest/options/query.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { admitConnection } from './admit.ts';
import {
  containerOf,
  type KubeletAccess,
  kubeletNamed,
  kubeletUnreachable,
  noContainer,
  nodeNameOf,
  openKubeletRequest,
  podOf,
} from './kubelet.ts';

/** Subresources of Pods that clients ask for by an upgrade. */
const streams: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward']);

/** Whether an upgrade asks for a container's streams. */
export function wantsContainer({ group, resource, subresource }: ApiRequest['info']): boolean {
  return group === '' && resource === 'pods' && streams.has(subresource);
}

/** Answers requests for streams that are no upgrade. Without kubelets there is no container: 501. */
export function withoutUpgrade(kubelets: KubeletAccess | undefined): ResourceHandler {
  return async (core, _resource, request, reply) => {
    await admitConnection(core, request, reply);
    podOf(core, request);
    if (kubelets === undefined) throw noContainer(request.info);
    throw badRequest('Upgrade request required');
  };
}

/** Passes the streams of a Pod on to its kubelet; bytes go both ways until one side ends. */
export function streamHandler(core: ServerCore, kubelets: KubeletAccess | undefined): UpgradeHandler {
  return async (request, client, head) => {
    const pod = podOf(core, request);
    if (kubelets === undefined) throw noContainer(request.info);
    const { info, query } = request;
    const path =
      info.subresource === 'portforward'
        ? `/portForward/${info.namespace}/${info.name}?${portsOf(query)}`
        : `/${info.subresource}/${info.namespace}/${info.name}/${containerOf(pod, query.get('container') ?? '')}?${commandOf(query)}`;
    const nodeName = nodeNameOf(pod);
    if (nodeName === '') throw badRequest(`pod ${info.name} does not have a host assigned`);
    const target = kubeletNamed(core, nodeName);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      // Clients that a kubelet has refused a WebSocket try SPDY: they get the reason.
      if (info.subresource !== 'portforward')
        checkRunning(pod, containerOf(pod, query.get('container') ?? ''));
      throw badRequest(
        `streams are served over WebSocket only: upgrade the client (kubectl 1.31 and later), which asked for ${request.headers.upgrade ?? 'nothing'}`,
      );
    }
    const asked = { method: request.method, path, headers: upgradeHeaders(request) };
    await forwardUpgrade(
      client,
      head,
      async (signal) => openKubeletRequest(kubelets, target, asked, signal),
      (error) => kubeletUnreachable(error, target),
    );
  };
}

/** @throws {StatusError} 500 in the kubelet's words, where the status of a Pod does not show that a container runs. */
function checkRunning(pod: KubeObject, container: string): void {
  const status = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses']
    .flatMap((list) => listAt(pod, 'status', list))
    .find((each) => textAt(each, 'name') === container);
  if (at(status, 'state', 'running') !== undefined) return;
  const message = `unable to upgrade connection: container not found (${goQuote(container)})`;
  throw new StatusError(500, 'InternalError', message);
}

/** The options of exec and attach, by the kubelet's names. @throws {StatusError} 400 */
function commandOf(query: URLSearchParams): string {
  const is = (name: string): boolean => booleanParameter(query, name) ?? false;
  const asked = new URLSearchParams();
  // PodExecOptions without streams are none that anything can be done with.
  const wanted = [
    ['stdin', 'input'],
    ['stdout', 'output'],
    ['stderr', 'error'],
    ['tty', 'tty'],
  ] as const;
  for (const [name, kubeletName] of wanted) if (is(name)) asked.set(kubeletName, '1');
  if (!is('stdin') && !is('stdout') && !is('stderr')) {
    throw badRequest('you must specify at least 1 of stdin, stdout, stderr');
  }
  for (const word of query.getAll('command')) asked.append('command', word);
  return asked.toString();
}

function portsOf(query: URLSearchParams): string {
  return query
    .getAll('ports')
    .map((ports) => `ports=${encodeURIComponent(ports)}`)
    .join('&');
}
