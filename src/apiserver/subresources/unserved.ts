import { StatusError } from '../../objects/status.ts';
import type { ApiRequest } from '../http/exchange.ts';
import { badRequest, notFound } from '../../objects/status-errors.ts';
import { parseId } from '../proxy/endpoint-resolver.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { keyOf } from '../rest/served-resource.ts';
import { admitConnection } from './admit.ts';

/** Subresources of Pods that clients ask for by an upgrade (SPDY, WebSocket). */
const streams: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward']);

/** Answers for subresources that need a running container: there is none behind a simulated Pod. */
export const noContainers: ResourceHandler = async (core, resource, request, reply) => {
  const { info } = request;
  await admitConnection(core, request, reply);
  const stored = core.storage.get(keyOf(resource, info.namespace, info.name));
  throw stored === undefined ? notFound(resource.groupResource, info.name) : noContainer(info);
};

/** Answers for `nodes/proxy`, whose path may name a scheme and a port: no kubelet listens on a simulated Node. */
export const noKubelet: ResourceHandler = async (core, resource, request, reply) => {
  const { info } = request;
  await admitConnection(core, request, reply);
  const name = parseId(info.name)?.name;
  if (name === undefined) throw badRequest(`invalid node request ${JSON.stringify(info.name)}`);
  const stored = core.storage.get(keyOf(resource, info.namespace, name));
  throw stored === undefined
    ? notFound(resource.groupResource, name)
    : notSimulated(info, 'kubelet on', name);
};

/** Whether an upgrade asks for a container's streams. */
export function wantsContainer({ group, resource, subresource }: ApiRequest['info']): boolean {
  return group === '' && resource === 'pods' && streams.has(subresource);
}

/** 501 with the reason why there are no logs, streams and ports. */
export function noContainer(info: ApiRequest['info']): StatusError {
  return notSimulated(info, 'container behind', info.name);
}

function notSimulated(info: ApiRequest['info'], missing: string, name: string): StatusError {
  const { resource, subresource } = info;
  const what = resource === 'nodes' ? 'Nodes' : 'Pods';
  return new StatusError(
    501,
    'NotImplemented',
    `${resource}/${subresource}: ${what} are simulated here, there is no ${missing} ${JSON.stringify(name)}`,
    { details: { name, kind: resource } },
  );
}
