import type { KubeObject } from '../../objects/meta.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import { bodyMediaType } from '../http/media-types.ts';
import type { BodyKind } from '../rest/admission.ts';
import { type CheckedWriteOptions, writeOptions } from '../rest/options/write-options.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { decodeBody } from '../schema/decode-body.ts';

/** Reads the body and options of a POST to a subresource. @throws {StatusError} 400, 415 or 422 */
export async function readSubresourceBody(
  request: ApiRequest,
  reply: Reply,
  { schema, ...kind }: BodyKind & { readonly schema: string },
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
