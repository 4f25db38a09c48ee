/** The log of a container (`pkg/registry/core/pod/rest/log.go`). */
import type { IncomingMessage } from 'node:http';
import { goQuote } from '../../objects/go-text.ts';
import { StatusError } from '../../objects/status.ts';
import { badRequest } from '../../objects/status-errors.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  invalidObject,
} from '../../registry/validation/field-errors.ts';
import type { ApiRequest, ReplyStream } from '../http/exchange.ts';
import { answerOf } from '../proxy/backend.ts';
import { copy } from '../proxy/exchange.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { booleanParameter } from '../rest/options/query.ts';
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
