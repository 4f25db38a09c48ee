import type { KubeObject, ListMeta } from '../../objects/meta.ts';
import type { ApiRequest } from '../http/exchange.ts';
import { type EndpointKind, negotiate, type Negotiated } from '../http/negotiation.ts';
import { encodeObject } from '../schema/encode.ts';
import { partialMetadata } from '../tables/partial-metadata.ts';
import { type IncludeObject, includeObjectOf, toTable } from '../tables/table.ts';
import type { ServedResource } from './served-resource.ts';

/** The form in which a client gets the objects of one resource. */
export interface Output {
  readonly negotiated: Negotiated;
  readonly includeObject: IncludeObject;
}

/** Reads what the client accepts. @throws {StatusError} 406, or 400 for a bad `includeObject`. */
export function outputOf(
  request: ApiRequest,
  resource: ServedResource,
  endpoint: 'object' | 'collection' | 'watch' | 'review',
): Output {
  const custom: EndpointKind = endpoint === 'watch' ? 'custom-watch' : 'custom';
  const negotiated = negotiate(request.headers.accept, resource.custom ? custom : endpoint);
  return {
    negotiated,
    includeObject: negotiated.as === 'Table' ? includeObjectOf(request.query) : 'Metadata',
  };
}

/** The object in the form of the client's `as=`. */
export function convertOne(
  output: Output,
  resource: ServedResource,
  object: KubeObject,
  now: number,
  withColumns: boolean,
): unknown {
  const { as, metaVersion: version } = output.negotiated;
  if (as === 'Table') {
    const metadata: ListMeta =
      object.metadata.resourceVersion === undefined
        ? {}
        : { resourceVersion: object.metadata.resourceVersion };
    return toTable(resource.table, [object], {
      includeObject: output.includeObject,
      now,
      metadata,
      withColumns,
      version,
      inOrder: inOrderOf(resource),
    });
  }
  return partialMetadata(object, version);
}

/** Makes the JSON value of an object in the order of its Go type, for the columns of a table. */
export function inOrderOf({ schema }: ServedResource): (object: KubeObject) => unknown {
  return (object): unknown => JSON.parse(encodeObject(schema, object));
}
