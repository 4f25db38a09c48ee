import type { JsonRecord } from '../../../objects/json.ts';
import type { DiscoveredResource } from '../discovered-resource.ts';
import { fullVersion } from '../../../objects/kubernetes-version.ts';
import { type Components, closure, reference, publishedSchema } from './components.ts';
import { type Operation, pathItemsOf, pathItem, answerTypes, type Parameter } from './operations.ts';

/** The `info` of documents of both versions. */
export function documentInfo(): JsonRecord {
  return { title: 'Kubernetes', version: fullVersion };
}

/** The OpenAPI v3 document of one group version. Yields between components. */
export function* openApiV3(
  resources: readonly DiscoveredResource[],
  components: Components,
): Generator<undefined, JsonRecord, undefined> {
  const paths = resources.flatMap(pathItemsOf);
  const used = new Set(resources.map(({ schema }) => schema));
  const custom = new Set(resources.filter((resource) => resource.custom).map(({ schema }) => schema));
  for (const { operations } of paths) for (const operation of operations) addComponents(operation, used);
  const schemas: JsonRecord = {};
  for (const [name, schema] of yield* closure(components, used)) {
    schemas[name] = custom.has(name) ? publishedSchema(schema, false) : schema;
    yield;
  }
  return {
    openapi: '3.0.0',
    info: documentInfo(),
    paths: Object.fromEntries(paths.map((item) => [item.path, pathItem(item, operationOf, parameter)])),
    components: {
      schemas,
      securitySchemes: {
        BearerToken: {
          type: 'apiKey',
          description: 'A bearer token.',
          name: 'authorization',
          in: 'header',
        },
      },
    },
  };
}

function addComponents(operation: Operation, into: Set<string>): void {
  if (operation.body !== undefined) into.add(operation.body.component);
  for (const [, component] of operation.responses) if (component !== undefined) into.add(component);
}

function operationOf(operation: Operation, tag: string): JsonRecord {
  const { body } = operation;
  return {
    tags: [tag],
    description: operation.description,
    operationId: operation.id,
    ...(operation.parameters.length === 0 ? {} : { parameters: operation.parameters.map(parameter) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            content: contentOf(body.mediaTypes, reference(body.component)),
            ...(body.required ? { required: true } : {}),
          },
        }),
    responses: {
      ...Object.fromEntries(
        operation.responses.map(([code, component]) => [
          String(code),
          {
            description: describeCode(code),
            content:
              component === undefined
                ? contentOf(['*/*'], { type: 'string' })
                : contentOf(answerTypes, reference(component)),
          },
        ]),
      ),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.kind,
  };
}

function contentOf(mediaTypes: readonly string[], schema: JsonRecord): JsonRecord {
  return Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema }]));
}

/** The description of a status code in documents of both versions. */
export function describeCode(code: number): string {
  return code === 201 ? 'Created' : code === 202 ? 'Accepted' : 'OK';
}

function parameter({ name, in: place, type, description }: Parameter): JsonRecord {
  return {
    name,
    in: place,
    description,
    ...(place === 'path' ? { required: true } : {}),
    schema: { type, uniqueItems: true },
  };
}
