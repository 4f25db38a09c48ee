import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { conflict, methodNotAllowed, notFound } from '../../objects/status-errors.ts';
import { invalidObject } from '../../registry/field-errors.ts';
import {
  fromScale,
  type Scalable,
  type Scale,
  type ScaleForm,
  toScale,
  validateScale,
} from '../../registry/scale.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import { encode } from '../http/encoding.ts';
import { bodyMediaType, patchType } from '../http/media-types.ts';
import { negotiate } from '../http/negotiation.ts';
import { patchObject } from '../patch/patch.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { keyOf, type ServedResource } from '../rest/served-resource.ts';
import { tracker } from '../rest/tracker.ts';
import { updateObject } from '../rest/update.ts';
import { writeOptions, type WriteOptions } from '../rest/write-options.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { decodeBody } from '../schema/decode-body.ts';

const scaleKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
const scaleSchema = 'io.k8s.api.autoscaling.v1.Scale';

/** Serves `/scale`: GET, PUT and PATCH of the number of replicas (`kubectl scale`). */
export const scaleHandler: ResourceHandler = async (core, resource, request, reply) => {
  const { namespace, name } = request.info;
  const { mediaType } = negotiate(request.headers.accept, 'object');
  const form = resource.definition.scale ?? workloadScale(resource);
  const scaleOfStored = (object: KubeObject | undefined): Scale => {
    const scale = object === undefined ? undefined : form.read(object);
    if (scale === undefined) throw notFound(resource.groupResource, name);
    return scale;
  };
  const stored = core.storage.get(keyOf(resource, namespace, name))?.object;
  let scaled = scaleOfStored(stored);
  if (request.method === 'GET' || request.method === 'HEAD') {
    if (stored !== undefined) form.check?.(stored);
    reply.send(200, mediaType, encode(scaled, mediaType));
    return;
  }
  const change = await readChange(request, reply);
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
    uid: '',
    warn: (text) => reply.warn(text),
    produce: (live) => {
      const before = scaleOfStored(live?.object);
      const wanted = change.apply(before);
      const { uid = '' } = wanted.metadata;
      if (uid !== '' && uid !== before.metadata.uid) {
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
    track: resource.custom ? () => undefined : tracker(core, resource, request, change.options.fieldManager),
  });
  scaled = form.read(object) ?? scaled;
  reply.send(200, mediaType, encode(scaled, mediaType));
};

/** `/scale` of the workloads of apps, and of ReplicationControllers, whose selector is a map of labels. */
function workloadScale({ definition }: ServedResource): ScaleForm {
  const plainSelector = definition.plural === 'replicationcontrollers';
  return {
    read: (object) => (isScalable(object) ? toScale(object, plainSelector) : undefined),
    write: (object, scale) => (isScalable(object) ? fromScale(structuredClone(object), scale) : object),
  };
}

interface Change {
  readonly options: WriteOptions;
  apply(before: Scale): Scale;
}

async function readChange(request: ApiRequest, reply: Reply): Promise<Change> {
  const expected = { ...scaleKind, schema: builtinSchema(scaleSchema) };
  if (request.method === 'PUT') {
    const contentType = bodyMediaType(request.headers['content-type']);
    const bytes = await request.body();
    const options = writeOptions(request, 'UpdateOptions');
    const { fieldValidation } = options;
    const { object, warnings } = decodeBody({ bytes, contentType, expected, fieldValidation });
    for (const warning of warnings) reply.warn(warning);
    return { options, apply: () => scaleOf(object) };
  }
  if (request.method !== 'PATCH') throw methodNotAllowed(['GET', 'PUT', 'PATCH']);
  const type = patchType(request.headers['content-type'], false);
  const bytes = await request.body();
  const options = writeOptions(request, 'PatchOptions', type === 'apply');
  return {
    options,
    apply: (before) => {
      const patch = {
        type: type === 'apply' ? ('merge' as const) : type,
        bytes,
        live: before,
        expected,
        fieldValidation: options.fieldValidation,
      };
      return scaleOf(patchObject(patch).object);
    },
  };
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
