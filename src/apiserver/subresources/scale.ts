import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { methodNotAllowed, notFound } from '../../objects/status-errors.ts';
import { invalidObject } from '../../registry/field-errors.ts';
import { fromScale, type Scalable, type Scale, toScale, validateScale } from '../../registry/scale.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import { encode } from '../http/encoding.ts';
import { bodyMediaType, patchType } from '../http/media-types.ts';
import { negotiate } from '../http/negotiation.ts';
import { patchObject } from '../patch/patch.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { keyOf } from '../rest/served-resource.ts';
import { updateObject } from '../rest/update.ts';
import { writeOptions, type WriteOptions } from '../rest/write-options.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { decodeBody } from '../schema/decode-body.ts';

const scaleKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };

/** Serves `/scale`: GET, PUT and PATCH of the number of replicas (`kubectl scale`). */
export const scaleHandler: ResourceHandler = async (core, resource, request, reply) => {
  const { namespace, name } = request.info;
  const { mediaType } = negotiate(request.headers.accept, 'object');
  const plainSelector = resource.definition.plural === 'replicationcontrollers';
  const stored = core.storage.get(keyOf(resource, namespace, name));
  if (stored === undefined || !isScalable(stored.object)) throw notFound(resource.groupResource, name);
  if (request.method === 'GET') {
    reply.send(200, mediaType, encode(toScale(stored.object, plainSelector), mediaType));
    return;
  }
  const change = await readChange(request, reply);
  let scaled = toScale(stored.object, plainSelector);
  await updateObject(core, resource, {
    namespace,
    name,
    subresource: '',
    user: request.user,
    dryRun: change.options.dryRun,
    create: 'never',
    uid: '',
    warn: (text) => reply.warn(text),
    produce: (live) => {
      if (live === undefined || !isScalable(live)) throw notFound(resource.groupResource, name);
      const before = toScale(live, plainSelector);
      const wanted = change.apply(before);
      const errors = validateScale(wanted, before);
      if (errors.length > 0) throw invalidObject({ group: 'autoscaling', kind: 'Scale', name }, errors);
      const next = fromScale(structuredClone(live), wanted);
      scaled = toScale(next, plainSelector);
      return next;
    },
    track: () => undefined,
  }).then(({ object }) => {
    if (isScalable(object)) scaled = toScale(object, plainSelector);
  });
  reply.send(200, mediaType, encode(scaled, mediaType));
};

interface Change {
  readonly options: WriteOptions;
  apply(before: Scale): Scale;
}

async function readChange(request: ApiRequest, reply: Reply): Promise<Change> {
  const expected = { ...scaleKind, schema: builtinSchema('io.k8s.api.autoscaling.v1.Scale') };
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
