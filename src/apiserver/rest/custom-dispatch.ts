/**
 * Finds the handler of a request for custom objects (apiextensions `apiserver/customresource_handler.go`): by the
 * verb, not by method and path, because there is no route table for them.
 */
import { badRequest, methodNotSupported, notFound } from '../../objects/status-errors.ts';
import type { RequestInfo } from '../http/exchange.ts';
import { patchType } from '../http/media-types.ts';
import {
  handleCreate,
  handleDelete,
  handleDeleteCollection,
  handleGet,
  handleList,
  handlePatch,
  handleUpdate,
  handleWatch,
  type ResourceHandler,
} from './handlers.ts';
import type { ServedResource } from './served-resource.ts';

/** PUT and PATCH need a name in the path. The media type of a patch is looked at before the name. */
const named =
  (handler: ResourceHandler): ResourceHandler =>
  async (core, resource, request, reply) => {
    const { verb, name } = request.info;
    if (verb === 'patch') patchType(request.headers['content-type'], true);
    if (name === '') throw badRequest('name must be provided');
    await handler(core, resource, request, reply);
  };

const partVerbs: ReadonlyMap<string, ResourceHandler> = new Map([
  ['get', handleGet],
  ['update', named(handleUpdate)],
  ['patch', named(handlePatch)],
]);
const verbs: ReadonlyMap<string, ResourceHandler> = new Map([
  ...partVerbs,
  ['list', handleList],
  ['watch', handleWatch],
  ['create', handleCreate],
  ['delete', handleDelete],
  ['deletecollection', handleDeleteCollection],
]);

/** Cluster-scoped kinds have no path below a namespace; above namespaces the objects of others are only read. */
export function isCustomPath({ definition }: ServedResource, info: RequestInfo): boolean {
  if (!definition.namespaced) return info.namespace === '';
  return info.namespace !== '' || info.verb === 'list' || info.verb === 'watch';
}

/**
 * @param scale the handler of `/scale`.
 * @throws {StatusError} 404 for an unknown subresource, 405 for a verb that the resource lacks.
 */
export function customHandler(
  resource: ServedResource,
  { verb, subresource, name }: RequestInfo,
  scale: ResourceHandler | undefined,
): ResourceHandler {
  const { groupResource } = resource;
  const served = verbsOf(resource, subresource, scale);
  if (served === undefined) throw notFound(groupResource, name);
  const handler = served.get(verb);
  if (handler === undefined) throw methodNotSupported(groupResource, verb);
  return handler;
}

function verbsOf(
  { definition }: ServedResource,
  subresource: string,
  scale: ResourceHandler | undefined,
): ReadonlyMap<string, ResourceHandler> | undefined {
  if (subresource === '') return verbs;
  if (subresource === 'status' && definition.strategy.status !== undefined) return partVerbs;
  if (subresource !== 'scale' || definition.scale === undefined || scale === undefined) return undefined;
  return new Map([...partVerbs.keys()].map((verb) => [verb, scale]));
}
