import type { ClientRequest, IncomingMessage } from 'node:http';
import { goQuote } from '../../objects/formats/go-text.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { listAt, textAt } from '../../objects/json.ts';
import { StatusError, badRequest, notFound, plainError } from '../../objects/status.ts';
import type { ApiRequest, UpgradeHandler, ReplyStream } from '../http/exchange.ts';
import type { CertificatePair } from '../../tls/certificates.ts';
import { describeDialFailure, type DialPod, openRequest, answerOf } from '../proxy/dial-pod.ts';
import { kubeletOf, type KubeletTarget } from '../proxy/endpoint-resolver.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey } from '../storage/storage.ts';
import { forwardUpgrade, upgradeHeaders } from '../proxy/upgrade.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { booleanParameter } from '../rest/options.ts';
import { admitConnection } from './admit.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  invalidObject,
} from '../../registry/validation/field-errors.ts';
import { copy } from '../proxy/forwarding.ts';

/**
 * - exec, attach and port-forward of Pods (`pkg/registry/core/pod/rest/subresources.go`).
 * - The log of a container (`pkg/registry/core/pod/rest/log.go`).
 */

/** The connection to kubelets, and this server's identity there. */
export interface KubeletAccess {
  readonly dialPod: DialPod;
  readonly client: CertificatePair;
}

/** The stored Pod of a request. @throws {StatusError} 404 */
function podOf(core: ServerCore, { info }: ApiRequest): KubeObject {
  const stored = core.storage.get(objectKey('', 'pods', info.namespace, info.name));
  if (stored === undefined) throw notFound({ group: '', resource: 'pods' }, info.name);
  return stored.object;
}

/** The kubelet of a node by the node's name. @throws {StatusError} 404 or 500 */
function kubeletNamed(core: ServerCore, nodeName: string): KubeletTarget {
  return kubeletOf(core.storage.get(objectKey('', 'nodes', '', nodeName))?.object, nodeName);
}

/** Begins a request to a kubelet. @throws {StatusError} 500 where it cannot be reached. */
async function openKubeletRequest(
  { dialPod, client }: KubeletAccess,
  target: KubeletTarget,
  asked: { readonly method: string; readonly path: string; readonly headers: ClientRequestHeaders },
  signal: AbortSignal,
): Promise<ClientRequest> {
  return openRequest(dialPod, { scheme: 'https', ...target, isPod: false }, asked, signal, client);
}

type ClientRequestHeaders = Record<string, string | string[]>;

/** @throws {StatusError} 500 in kube-apiserver's words. */
function kubeletUnreachable(error: unknown, target: KubeletTarget): never {
  throw plainError(`error dialing backend: ${describeDialFailure(error, target)}`);
}

/**
 * The container of a request (`pkg/registry/core/pod/strategy.go`): the one that is named, or the only one.
 *
 * @throws {StatusError} 400
 */
function containerOf(pod: KubeObject, wanted: string): string {
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
function nodeNameOf(pod: KubeObject): string {
  return textAt(pod, 'spec', 'nodeName');
}

/** 501 with the reason why there are no logs, streams and ports. */
function noContainer({ resource, subresource, name }: ApiRequest['info']): StatusError {
  return new StatusError(
    501,
    'NotImplemented',
    `${resource}/${subresource}: Pods are simulated here, there is no container behind ${goQuote(name)}`,
    { details: { name, kind: resource } },
  );
}

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
    const asked = { method: request.method, path, headers: upgradeHeaders(request) };
    await forwardUpgrade(
      client,
      head,
      async (signal) => openKubeletRequest(kubelets, target, asked, signal),
      (error) => kubeletUnreachable(error, target),
    );
  };
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

/** Bytes of an error's text that are read. */
const maxErrorText = 2048;

/** Passes a log on from the kubelet. Without kubelets there is no container: 501. */
export function logHandler(kubelets: KubeletAccess | undefined): ResourceHandler {
  return async (core, _resource, request, reply) => {
    const { query, info } = request;
    const pod = podOf(core, request);
    if (kubelets === undefined) throw noContainer(info);
    checkOptions(query, info.name);
    const container = containerOf(pod, query.get('container') ?? '');
    const nodeName = nodeNameOf(pod);
    // A Pod that is on no node has no log yet.
    if (nodeName === '') {
      reply.send(200, 'text/plain', '');
      return;
    }
    const target = kubeletNamed(core, nodeName);
    const asked = {
      method: 'GET',
      path: `/containerLogs/${info.namespace}/${info.name}/${container}?${queryOf(query)}`,
      headers: {},
    };
    let response: IncomingMessage;
    try {
      const outgoing = await openKubeletRequest(kubelets, target, asked, request.signal);
      const cut = (): void => void outgoing.destroy();
      request.signal.addEventListener('abort', cut, { once: true });
      outgoing.end();
      ({ response } = await answerOf(outgoing));
    } catch (error) {
      return kubeletUnreachable(error, target);
    }
    if (response.statusCode !== 200) throw await failureOf(response, request);
    const stream: ReplyStream = reply.stream(200, { 'Content-Type': 'text/plain' });
    await copy([], response, stream);
  };
}

const switches = ['follow', 'previous', 'timestamps'];
const passed = ['tailLines', 'limitBytes', 'sinceSeconds', 'sinceTime', 'stream'];

function queryOf(query: URLSearchParams): string {
  const kept = new URLSearchParams();
  for (const name of switches) if (booleanParameter(query, name) === true) kept.set(name, 'true');
  for (const name of passed) {
    const value = query.get(name);
    if (value !== null) kept.set(name, value);
  }
  return kept.toString();
}

/** `ValidatePodLogOptions`. @throws {StatusError} 400 or 422 */
function checkOptions(query: URLSearchParams, name: string): void {
  const errors: FieldError[] = [];
  const atLeast = (option: string, least: number, detail: string): void => {
    const text = query.get(option);
    if (text === null) return;
    if (!/^-?\d{1,18}$/.test(text)) {
      throw badRequest(`strconv.ParseInt: parsing ${goQuote(text)}: invalid syntax`);
    }
    if (Number(text) < least) errors.push(invalid(option, Number(text), detail));
  };
  atLeast('tailLines', 0, 'must be greater than or equal to 0');
  atLeast('limitBytes', 1, 'must be greater than 0');
  if (query.has('sinceSeconds') && query.has('sinceTime')) {
    errors.push(forbiddenField('', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  } else atLeast('sinceSeconds', 1, 'must be greater than 0');
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'PodLogOptions', name }, errors);
}

/** A kubelet's error as a Status (`GenericHttpResponseChecker`). */
async function failureOf(response: IncomingMessage, { info }: ApiRequest): Promise<StatusError> {
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
    if (text.length > maxErrorText) break;
  }
  const code = response.statusCode ?? 500;
  if (code === 400) return badRequest(text);
  return new StatusError(code, code === 404 ? 'NotFound' : 'InternalError', text, {
    details: { name: info.name, kind: 'pods' },
  });
}
