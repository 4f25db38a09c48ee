import type { KubeObject } from '../../objects/meta.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import { bodyMediaType } from '../http/media-types.ts';
import { type WriteOptions, writeOptions } from '../rest/write-options.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { decodeBody } from '../schema/decode-body.ts';

/** A kind that only subresources read: what its schema is called. */
export interface BodyKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: string;
}

/** Reads the body and options of a POST to a subresource. @throws {StatusError} 400, 415 or 422 */
export async function readBody(
  request: ApiRequest,
  reply: Reply,
  { schema, ...kind }: BodyKind,
): Promise<{ object: KubeObject; options: WriteOptions }> {
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
