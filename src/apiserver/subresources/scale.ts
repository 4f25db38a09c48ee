import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { badRequest, conflict, methodNotAllowed, notFound, StatusError } from '../../objects/status.ts';
import { invalidObject } from '../../registry/validation/field-errors.ts';
import type { Scale } from '../../objects/types/autoscaling.generated.ts';
import {
  fromScale,
  type Scalable,
  type ScaleForm,
  toScale,
  validateScale,
} from '../../registry/generic/scale.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import { encode } from '../http/reply.ts';
import { bodyMediaType, patchType, negotiate } from '../http/negotiation.ts';
import { checkPatchBody, patchObject } from '../patch/patch.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { matchName, matchNamespace } from '../rest/system-fields.ts';
import type { Output } from '../rest/output.ts';
import { Responder } from '../rest/responder.ts';
import { storageKeyOf, type ServedResource, readServedVersion } from '../rest/served-resource.ts';
import { fieldManager } from '../rest/commit.ts';
import { updateObject } from '../rest/update.ts';
import { writeOptions, type CheckedWriteOptions } from '../rest/options.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { type BodyToDecode, decodeBody, type DecodedBody, schemeName } from '../schema/decode-body.ts';
import { scalesTable } from '../tables/workloads.ts';
import { customTableConverter } from '../tables/custom-columns.ts';
import { includeObjectOf } from '../tables/table.ts';

const scaleKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
const scaleSchema = 'io.k8s.api.autoscaling.v1.Scale';

/** Serves `/scale`: GET, PUT and PATCH of the number of replicas (`kubectl scale`). */
export const scaleHandler: ResourceHandler = async (core, resource, request, reply) => {
  const { namespace, name } = request.info;
  const negotiated = negotiate(request.headers.accept, 'object');
  const output: Output = {
    negotiated,
    includeObject: negotiated.as === 'Table' ? includeObjectOf(request.query) : 'Metadata',
  };
  const send = async (scale: Scale): Promise<void> => {
    const { as, mediaType } = negotiated;
    if (as === '') reply.send(200, mediaType, encode(scale, mediaType));
    else await new Responder(core, shownAsScale(resource), reply, output).object(200, scale);
  };
  const form = resource.definition.scale ?? workloadScale(resource);
  const scaleOfStored = (object: KubeObject | undefined): Scale => {
    const scale = object === undefined ? undefined : form.read(object);
    if (scale === undefined) throw notFound(resource.groupResource, name);
    return scale;
  };
  const stored = (
    await readServedVersion(resource, core.storage.get(storageKeyOf(resource, namespace, name)))
  )?.object;
  let scaled = scaleOfStored(stored);
  if (request.method === 'GET' || request.method === 'HEAD') {
    if (stored !== undefined) form.check?.(stored);
    await send(scaled);
    return;
  }
  const change = await readChange(resource, request, reply);
  const { object } = await updateObject(core, resource, {
    namespace,
    name,
    subresource: '',
    user: request.user,
    dryRun: change.options.dryRun,
    view: {
      subresource: 'scale',
      body: { ...scaleKind, schema: scaleSchema },
      read: scaleOfStored,
      write: (object, view) => form.write(object, scaleOf(view)),
    },
    create: 'never',
    uid: resource.custom ? change.uid : '',
    warn: (text) => reply.warn(text),
    produce: (live) => {
      const before = scaleOfStored(live?.object);
      const wanted = change.apply(before);
      const { uid = '' } = wanted.metadata;
      if (!resource.custom && uid !== '' && uid !== before.metadata.uid) {
        const { group, resource: plural } = resource.groupResource;
        const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${before.metadata.uid ?? ''}`;
        throw conflict({ group, resource: `${plural}/scale` }, name, why);
      }
      // Custom objects have rules of their own for what a Scale does to them.
      const errors = resource.custom ? [] : validateScale(wanted);
      if (errors.length > 0) throw invalidObject({ group: 'autoscaling', kind: 'Scale', name }, errors);
      return live === undefined ? wanted : form.write(live.object, wanted);
    },
    // Of custom objects kube-apiserver fails to track it, silently: it finds no version of theirs called autoscaling/v1.
    track: resource.custom
      ? () => undefined
      : fieldManager(core, resource, request, change.options.fieldManager),
  });
  scaled = form.read(object) ?? scaled;
  await send(scaled);
};

/** apiextensions-apiserver shows Scales in columns of its own (`apiserver/customresource_handler.go`). */
const scalesOfCustom = customTableConverter([
  { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas', description: 'How many there should be.' },
  { name: 'Available', type: 'integer', jsonPath: '.status.replicas', description: 'How many there are.' },
  {
    name: 'Age',
    type: 'date',
    jsonPath: '.metadata.creationTimestamp',
    description: 'When the object was created.',
  },
]);

/** The resource as far as a table or the metadata of its Scale goes. */
function shownAsScale(resource: ServedResource): ServedResource {
  const strategy = { ...resource.definition.strategy };
  delete strategy.decorate;
  return {
    ...resource,
    definition: { ...resource.definition, strategy },
    shared: undefined,
    schema: builtinSchema(scaleSchema),
    table: resource.custom ? scalesOfCustom : scalesTable,
  };
}

/** `/scale` of the workloads of apps, and of ReplicationControllers, whose selector is a map of labels. */
function workloadScale({ definition }: ServedResource): ScaleForm {
  const plainSelector = definition.plural === 'replicationcontrollers';
  return {
    read: (object) => (isScalable(object) ? toScale(object, plainSelector) : undefined),
    write: (object, scale) => (isScalable(object) ? fromScale(structuredClone(object), scale) : object),
  };
}

interface Change {
  readonly options: CheckedWriteOptions;
  /** The uid that a PUT names, else "". */
  readonly uid: string;
  apply(before: Scale): Scale;
}

async function readChange(resource: ServedResource, request: ApiRequest, reply: Reply): Promise<Change> {
  const { namespace, name } = request.info;
  const checked = (object: KubeObject): KubeObject => {
    matchNamespace(object, resource.definition.namespaced ? namespace : '');
    matchName(object, name);
    return object;
  };
  const expected = { ...scaleKind, schema: builtinSchema(scaleSchema) };
  if (request.method === 'PUT') {
    const contentType = bodyMediaType(request.headers['content-type']);
    const bytes = await request.body();
    const options = writeOptions(request, 'UpdateOptions');
    const { fieldValidation } = options;
    const body = { bytes, contentType, expected, fieldValidation };
    const { object, warnings } = resource.custom ? decodeCustom(body) : decodeBody(body);
    for (const warning of warnings) reply.warn(warning);
    checked(object);
    return { options, uid: object.metadata.uid ?? '', apply: () => scaleOf(object) };
  }
  if (request.method !== 'PATCH') throw methodNotAllowed(['GET', 'PUT', 'PATCH']);
  const type = patchType(request.headers['content-type'], resource.custom);
  const bytes = await request.body();
  const options = writeOptions(request, 'PatchOptions', type === 'apply');
  checkPatchBody(type, bytes);
  return {
    options,
    uid: '',
    apply: (before) => {
      const patch = {
        type: type === 'apply' ? ('merge' as const) : type,
        bytes,
        live: before,
        expected,
        fieldValidation: options.fieldValidation,
      };
      return scaleOf(checked(patchObject(patch).object));
    },
  };
}

/**
 * The scheme of custom resources has no Scale: every decoding error has this text (`handlers/rest.go`
 * transformDecodeError).
 */
function decodeCustom(body: BodyToDecode): DecodedBody {
  try {
    return decodeBody(body);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    throw badRequest(`no kind is registered for the type v1.Scale in scheme ${JSON.stringify(schemeName)}`);
  }
}

function scaleOf(object: KubeObject): Scale {
  const value: object = object;
  const spec = isRecord(value) && isRecord(value['spec']) ? value['spec'] : {};
  const { replicas } = spec;
  return { ...object, spec: typeof replicas === 'number' ? { replicas } : {}, status: { replicas: 0 } };
}

function isScalable(object: KubeObject): object is Scalable {
  return 'spec' in object && 'status' in object;
}
