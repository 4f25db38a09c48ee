import { StatusError } from '../../objects/status.ts';
import type { ApiRequest } from '../http/exchange.ts';
import { notFound } from '../../objects/status-errors.ts';
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

/** Whether an upgrade asks for a container's streams. */
export function wantsContainer({ group, resource, subresource }: ApiRequest['info']): boolean {
  return group === '' && resource === 'pods' && streams.has(subresource);
}

/** 501 that says why there are no logs, streams and ports. */
export function noContainer({ resource, subresource, name }: ApiRequest['info']): StatusError {
  return new StatusError(
    501,
    'NotImplemented',
    `${resource}/${subresource}: Pods are simulated here, there is no container behind ${JSON.stringify(name)}`,
    { details: { name, kind: resource } },
  );
}
