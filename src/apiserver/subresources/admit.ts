import type { KubeObject } from '../../objects/meta.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import type { AdmissionAttributes, AdmissionReply, BodyKind } from '../rest/admission.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { booleanParameter, type CheckedWriteOptions, writeOptions } from '../rest/options.ts';
import { bodyMediaType } from '../http/negotiation.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { decodeBody } from '../schema/decode-body.ts';

/** Admission of what is posted to a subresource, and of connections to Pods and Services. */

/** What a subresource has read. */
export interface Posted {
  readonly name: string;
  readonly object: KubeObject;
  readonly body: BodyKind;
  readonly options: CheckedWriteOptions;
}

/** The object as admission plugins change it. @throws {StatusError} when one refuses it. */
export async function admitPosted(
  core: ServerCore,
  resource: ServedResource,
  { info, user }: ApiRequest,
  reply: AdmissionReply,
  { name, object, body, options }: Posted,
): Promise<KubeObject> {
  const attributes = {
    operation: 'CREATE' as const,
    resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name,
    object,
    oldObject: undefined,
    body,
    user,
    dryRun: options.dryRun,
  };
  return admit(core, reply, attributes);
}

/** Kinds of the options of connections, by resource and subresource. */
const connections: ReadonlyMap<string, string> = new Map([
  ['pods/attach', 'PodAttachOptions'],
  ['pods/exec', 'PodExecOptions'],
  ['pods/portforward', 'PodPortForwardOptions'],
  ['pods/proxy', 'PodProxyOptions'],
  ['services/proxy', 'ServiceProxyOptions'],
  ['nodes/proxy', 'NodeProxyOptions'],
]);

/** Calls the plugins for a connection (exec, port-forward, proxies). @throws {StatusError} */
export async function admitConnection(
  core: ServerCore,
  { info, user, query }: ApiRequest,
  reply: AdmissionReply,
): Promise<void> {
  const kind = connections.get(`${info.resource}/${info.subresource}`);
  const resource = core.resources.find(info.group, info.version, info.resource);
  if (kind === undefined || resource === undefined) return;
  await admit(core, reply, {
    operation: 'CONNECT',
    resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: info.name,
    object: { metadata: {}, ...optionsOf(query) },
    oldObject: undefined,
    body: { group: '', version: 'v1', kind, schema: undefined },
    user,
    dryRun: false,
  });
}

/** Queries as the options of exec and attach have them. */
function optionsOf(query: URLSearchParams): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const name of ['stdin', 'stdout', 'stderr', 'tty']) {
    const value = booleanParameter(query, name);
    if (value !== undefined) options[name] = value;
  }
  const container = query.get('container');
  if (container !== null) options['container'] = container;
  if (query.has('command')) options['command'] = query.getAll('command');
  if (query.has('ports')) options['ports'] = query.getAll('ports').map(Number);
  return options;
}

async function admit(
  core: ServerCore,
  reply: AdmissionReply,
  attributes: AdmissionAttributes & { readonly object: KubeObject },
): Promise<KubeObject> {
  const object = (await core.admission.mutate(attributes, reply)) ?? attributes.object;
  await core.admission.validate({ ...attributes, object }, reply);
  return object;
}

/** Reads the body and options of a POST to a subresource. @throws {StatusError} 400, 415 or 422 */
export async function readSubresourceBody(
  request: ApiRequest,
  reply: Reply,
  { schema, ...kind }: BodyKind & { readonly schema: string; readonly alsoVersion?: string },
): Promise<{ object: KubeObject; options: CheckedWriteOptions }> {
  const contentType = bodyMediaType(request.headers['content-type']);
  const bytes = await request.body();
  const options = writeOptions(request, request.method === 'PUT' ? 'UpdateOptions' : 'CreateOptions');
  const { object, warnings } = decodeBody({
    bytes,
    contentType,
    expected: { ...kind, schema: builtinSchema(schema) },
    fieldValidation: options.fieldValidation,
  });
  for (const warning of warnings) reply.warn(warning);
  return { object, options };
}
