import { parse as parseYaml } from 'yaml';
import { badRequest } from '../../objects/status-errors.ts';
import type { ApiRequest } from '../http/exchange.ts';
import { bodyMediaType } from '../http/media-types.ts';
import { parseJson } from '../schema/parse-json.ts';

/**
 * The body of a request that may have one (DELETE), parsed; undefined when there is none.
 * @throws {StatusError} 400 or 415
 */
export async function selectableBody(request: ApiRequest): Promise<unknown> {
  const bytes = await request.body();
  if (bytes.length === 0) return undefined;
  const mediaType = bodyMediaType(request.headers['content-type']);
  try {
    return mediaType === 'application/yaml' ? parseYaml(bytes.toString()) : parseJson(bytes).value;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badRequest(`couldn't get version/kind; json parse error: ${why}`);
  }
}
