/** Reads the DeleteOptions that a DELETE may carry (apiserver `endpoints/handlers/delete.go`). */
import type { JsonRecord } from '../../objects/json.ts';
import { badRequest } from '../../objects/status-errors.ts';
import { builtinSchema } from './builtin.ts';
import { notRegistered, parseBody } from './decode-body.ts';
import { DecodeError, decodeStruct } from './decode.ts';
import { JsonSyntaxError, YamlSyntaxError } from './json/go-json.ts';
import { interpretKind, VersionKindError } from './version-kind.ts';
import { ProtobufError } from './protobuf/wire-reader.ts';

const scheme = 'k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27';
const expected = { group: '', version: 'v1', kind: 'DeleteOptions' };

/**
 * The fields of the DeleteOptions in a body, unknown ones dropped.
 *
 * @throws {StatusError} 400 when the body is no DeleteOptions.
 */
export function decodeDeleteOptions(bytes: Buffer, contentType: string): JsonRecord {
  try {
    const { parsed } = parseBody(bytes, contentType, expected);
    const actual = interpretKind(parsed.value, expected);
    // Typed clients send them in the group version of the kind that they delete: they are of every one.
    if (actual.kind !== expected.kind) throw badRequest(notRegistered(actual, scheme));
    return decodeStruct(builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'), parsed).object;
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`);
    }
    if (
      error instanceof DecodeError ||
      error instanceof VersionKindError ||
      error instanceof ProtobufError ||
      error instanceof YamlSyntaxError
    ) {
      throw badRequest(error.message);
    }
    throw error;
  }
}
