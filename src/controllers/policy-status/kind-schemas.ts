import type { Transport } from '../../client/transport.ts';
import { isNotFound } from '../../client/errors.ts';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { Kind } from './plan.ts';

/** A kind with its schema in an OpenAPI v3 document. */
export interface KindSchema extends Kind {
  readonly schemas: JsonRecord;
  readonly schema: string;
}

/**
 * The schemas of kinds, from the OpenAPI v3 documents of a server; kinds without a schema are left out.
 *
 * @throws what {@link Transport.request} throws, unless the document is not there.
 */
export async function kindSchemas(
  transport: Transport,
  kinds: readonly Kind[],
  signal: AbortSignal,
): Promise<KindSchema[]> {
  const documents = new Map<string, JsonRecord>();
  const found: KindSchema[] = [];
  for (const kind of kinds) {
    const path = kind.group === '' ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`;
    const schemas = documents.get(path) ?? (await schemasAt(transport, path, signal));
    documents.set(path, schemas);
    const schema = Object.keys(schemas).find((name) => describes(schemas[name], kind));
    if (schema !== undefined) found.push({ ...kind, schemas, schema });
  }
  return found;
}

async function schemasAt(transport: Transport, path: string, signal: AbortSignal): Promise<JsonRecord> {
  try {
    const document = (await transport.request('GET', `/openapi/v3/${path}`, { signal })).json();
    const components = isRecord(document) ? document['components'] : undefined;
    const schemas = isRecord(components) ? components['schemas'] : undefined;
    return isRecord(schemas) ? schemas : {};
  } catch (error) {
    if (isNotFound(error)) return {};
    throw error;
  }
}

function describes(schema: unknown, { group, version, kind }: Kind): boolean {
  const kinds: unknown = isRecord(schema) ? schema['x-kubernetes-group-version-kind'] : undefined;
  return (
    Array.isArray(kinds) &&
    kinds.some(
      (one: unknown) =>
        isRecord(one) && one['group'] === group && one['version'] === version && one['kind'] === kind,
    )
  );
}
