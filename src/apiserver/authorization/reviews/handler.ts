import { recordAt } from '../../../objects/read.ts';
import { methodNotAllowed } from '../../../objects/status-errors.ts';
import { bodyMediaType } from '../../http/media-types.ts';
import type { ResourceHandler } from '../../rest/handlers.ts';
import { matchNamespace } from '../../rest/object-name.ts';
import { responderTo } from '../../rest/responder.ts';
import { timestamp } from '../../rest/server-core.ts';
import { writeOptions } from '../../rest/options/write-options.ts';
import { decodeBody } from '../../schema/decode-body.ts';
import type { Review, ReviewSources } from './reviews.ts';

/** Serves `POST` of one kind of review: the response is the object with its `status` set. */
export function reviewHandler(review: Review, sources: ReviewSources): ResourceHandler {
  return async (core, resource, request, reply) => {
    if (request.method !== 'POST') throw methodNotAllowed(['POST']);
    const respond = responderTo(core, resource, request, reply, 'review');
    const mediaType = bodyMediaType(request.headers['content-type']);
    const bytes = await request.body();
    const { fieldValidation } = writeOptions(request, 'CreateOptions');
    const { group, version, kind, namespaced } = resource.definition;
    const { object, warnings } = decodeBody({
      bytes,
      contentType: mediaType,
      expected: { group, version, kind, schema: resource.schema },
      fieldValidation,
    });
    for (const warning of warnings) reply.warn(warning);
    matchNamespace(object, namespaced ? request.info.namespace : '');
    const now = timestamp(core.now());
    const answer = review({ object, spec: recordAt(object, 'spec'), caller: request.user, now }, sources);
    await respond.object(201, { ...object, ...answer });
  };
}
