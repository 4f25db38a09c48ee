import {
  badRequest,
  methodNotSupported,
  notFound,
  methodNotAllowed,
  resourceNotFound,
} from '../../objects/status.ts';
import { type RequestInfo, type Handler, replyNotFound } from '../http/exchange.ts';
import { patchType } from '../http/negotiation.ts';
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
import type { ServerCore } from './server-core.ts';

/**
 * Finds the handler of a request for custom objects (apiextensions `apiserver/customresource_handler.go`): by the
 * verb, not by method and path, because there is no route table for them.
 */

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
function isCustomPath({ definition }: ServedResource, info: RequestInfo): boolean {
  if (!definition.namespaced) return info.namespace === '';
  return info.namespace !== '' || info.verb === 'list' || info.verb === 'watch';
}

/**
 * @param scale the handler of `/scale`.
 * @throws {StatusError} 404 for an unknown subresource, 405 for a verb that the resource lacks.
 */
function customHandler(
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

/**
 * The handlers of requests that neither read nor write stored objects: `services/proxy`, `pods/binding`,
 * `deployments/scale`, and whole resources such as access reviews. Keyed `<group>/<plural>/<subresource>`, the
 * subresource "" for the resource itself; `scale` alone is that of custom resources.
 */
export type SpecialHandlers = ReadonlyMap<string, ResourceHandler>;

/** Serves every request below a known group version. */
export function restHandler(core: ServerCore, specials: SpecialHandlers): Handler {
  return async (request, reply) => {
    const { info } = request;
    const resource = core.resources.find(info.group, info.version, info.resource);
    if (resource === undefined) {
      if (!core.resources.isCustomGroup(info.group)) throw resourceNotFound();
      replyNotFound(reply);
      return;
    }
    if (resource.custom && !isCustomPath(resource, info)) {
      replyNotFound(reply);
      return;
    }
    if (!resource.custom && !(isInScope(resource, info) && isServedPath(info))) throw resourceNotFound();
    const { deprecationWarning } = resource.definition;
    if (deprecationWarning !== undefined) reply.warn(deprecationWarning);
    const handler = resource.custom
      ? customHandler(resource, info, specials.get('scale'))
      : (specialOf(specials, resource, info) ?? handlerOf(resource, request.method, info));
    await handler(core, resource, request, reply);
  };
}

function specialOf(
  specials: SpecialHandlers,
  { definition }: ServedResource,
  { group, subresource }: RequestInfo,
): ResourceHandler | undefined {
  return specials.get(`${group}/${definition.plural}/${subresource}`);
}

/** Cluster-scoped kinds have no path below a namespace, and objects of namespaced kinds have none above. */
function isInScope({ definition }: ServedResource, info: RequestInfo): boolean {
  if (definition.namespaced) return info.namespace !== '' || isCollection(info);
  if (definition.plural !== 'namespaces') return info.namespace === '';
  return !/^\/+api\/v1\/(?:watch\/)?namespaces\/[^/]+\/namespaces(?:\/|$)/.test(info.path);
}

/**
 * `/api/v1/proxy/…` is a verb to the authorizer only, and watches below `/watch/` are of whole objects: no route
 * leads there (apiserver `pkg/endpoints/installer.go`).
 */
function isServedPath({ verb, subresource }: RequestInfo): boolean {
  return verb !== 'proxy' && (verb !== 'watch' || subresource === '');
}

function isCollection(info: RequestInfo): boolean {
  return info.subresource === '' && (info.verb === 'list' || info.verb === 'watch' || info.name === '');
}

/** @throws {StatusError} 404 for an unknown subresource, 405 for a verb that the resource lacks. */
function handlerOf(resource: ServedResource, method: string, info: RequestInfo): ResourceHandler {
  const { definition } = resource;
  if (info.subresource !== '') {
    if (info.rest.length > 0 || !hasPart(resource, info.subresource)) {
      throw resourceNotFound();
    }
    return choose(partHandlers(info.subresource), method);
  }
  const needsNamespace = definition.namespaced && info.namespace === '';
  if (!isCollection(info)) return choose(withVerbs(objectHandlers, definition.verbs), method);
  const handlers = withVerbs(info.verb === 'watch' ? watchHandlers : collectionHandlers, definition.verbs);
  return choose(needsNamespace ? handlers.filter(([name]) => name === 'GET') : handlers, method);
}

type MethodHandler = readonly [method: string, verb: string, handler: ResourceHandler];

const objectHandlers: readonly MethodHandler[] = [
  ['GET', 'get', handleGet],
  ['PUT', 'update', handleUpdate],
  ['PATCH', 'patch', handlePatch],
  ['DELETE', 'delete', handleDelete],
];
const collectionHandlers: readonly MethodHandler[] = [
  ['GET', 'list', handleList],
  ['POST', 'create', handleCreate],
  ['DELETE', 'deletecollection', handleDeleteCollection],
];
const watchHandlers: readonly MethodHandler[] = [['GET', 'watch', handleWatch]];

function partHandlers(subresource: string): readonly MethodHandler[] {
  if (subresource === 'finalize') return [['PUT', 'update', handleUpdate]];
  return objectHandlers.filter(([method]) => method !== 'DELETE');
}

function withVerbs(handlers: readonly MethodHandler[], verbs: readonly string[]): readonly MethodHandler[] {
  return handlers.filter(([, verb]) => verbs.includes(verb));
}

function hasPart(resource: ServedResource, subresource: string): boolean {
  const { strategy } = resource.definition;
  return subresource === 'status'
    ? strategy.status !== undefined
    : strategy.subresources?.has(subresource) === true;
}

function choose(handlers: readonly MethodHandler[], method: string): ResourceHandler {
  const found = handlers.find(([name]) => name === method);
  if (found === undefined) throw methodNotAllowed(handlers.map(([name]) => name));
  return found[2];
}
