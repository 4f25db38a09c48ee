import type { KubeObject, ListMeta } from '../../objects/meta.ts';
import type { ApiRequest } from '../http/exchange.ts';
import { type EndpointKind, negotiate, type Negotiated } from '../http/negotiation.ts';
import { encodeObject } from '../schema/encode.ts';
import { partialMetadata, type IncludeObject, includeObjectOf, toTable } from '../tables/table.ts';
import type { ServedResource } from './served-resource.ts';
import {
  matchesFields,
  parseFieldSelector,
  type FieldRequirement,
} from '../../objects/selectors/field-selector.ts';
import type { LabelRequirement } from '../../objects/selectors/label-selector.ts';
import { matchesLabels, parseLabelSelector } from '../../objects/selectors/labels.ts';
import { badRequest } from '../../objects/status.ts';
import type { ListOptions } from './options.ts';

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
      nowMs: now,
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

/** What a list or watch shows: objects whose labels and fields match. */
export interface ListFilter {
  /** No selector at all: everything matches. */
  readonly everything: boolean;
  /** False when the JSON of an object alone shows that it does not match: spares making objects of texts. */
  mayMatch(json: string): boolean;
  matches(object: KubeObject): boolean;
}

/**
 * Compiles the selectors of a list or watch.
 *
 * @param name the name in the path of a legacy watch of one object, "" for none.
 * @throws {StatusError} 400 for selectors that do not parse, for unknown fields of the kind, and for a field
 *   selector that contradicts the name (apiserver `pkg/endpoints/handlers/get.go`).
 */
export function listFilterOf(resource: ServedResource, options: ListOptions, name = ''): ListFilter {
  const labels = parseLabels(options.labelSelector);
  const fields = parseFields(resource, options.fieldSelector);
  if (name !== '') requireName(fields, name);
  const everything = labels.length === 0 && fields.length === 0;
  const fieldsOf = selectableFields(resource);
  const traces = [...labels.flatMap(tracesOfLabel), ...fields.flatMap(tracesOfField)].slice(0, maxTraces);
  return {
    everything,
    mayMatch: (json) => traces.every((some) => some.some((trace) => json.includes(trace))),
    matches: (object) => {
      if (everything) return true;
      if (labels.length > 0 && !matchesLabels(labels, object.metadata.labels)) return false;
      return fields.length === 0 || matchesFields(fields, fieldsOf(object));
    },
  };
}

function requireName(fields: FieldRequirement[], name: string): void {
  if (fields.length === 0) {
    fields.push({ field: 'metadata.name', operator: '=', value: name });
    return;
  }
  const selected = fields.find(({ field, operator }) => field === 'metadata.name' && operator === '=');
  if (selected?.value !== name) throw badRequest("fieldSelector metadata.name doesn't match requested name");
}

/** Texts that are looked for in an object's JSON: more take longer than the object. */
const maxTraces = 8;

/** Texts that JSON has as they are, and that are no numbers or booleans, which fields are compared with as texts. */
const verbatim = /^(?!true$|false$|\d+$)[A-Za-z0-9._/-]+$/;

/** The texts of which a matching object's JSON has one; none when it may have others. */
function tracesOfLabel({ key, operator, values }: LabelRequirement): string[][] {
  if (operator !== '=' && operator !== '==' && operator !== 'in') return [];
  if (values.length > maxTraces) return [];
  return [values.map((value) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)];
}

function tracesOfField({ operator, value }: FieldRequirement): string[][] {
  return operator === '=' && verbatim.test(value) ? [[value]] : [];
}

function parseLabels(text: string): readonly LabelRequirement[] {
  return text === '' ? [] : parseLabelSelector(text);
}

function parseFields(resource: ServedResource, text: string): FieldRequirement[] {
  if (text === '') return [];
  return parseFieldSelector(text).map((requirement) => ({
    ...requirement,
    field: knownField(resource, requirement.field),
  }));
}

/** The field behind a label, or a 400 in the words of kinds with and without fields of their own. */
function knownField(resource: ServedResource, label: string): string {
  const { definition } = resource;
  if (label === 'metadata.name') return label;
  if (label === 'metadata.namespace' && (definition.namespaced || definition.strategy.fields === undefined))
    return label;
  if (definition.strategy.fields === undefined) {
    if (resource.custom) throw badRequest(`field label not supported: ${label}`);
    throw badRequest(
      `${JSON.stringify(label)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    );
  }
  const field =
    definition.fieldLabels === undefined
      ? (definition.fieldAliases?.get(label) ?? label)
      : (definition.fieldLabels.get(label) ?? '');
  const known = definition.strategy.fields({ metadata: {} });
  if (!Object.hasOwn(known, field)) throw badRequest(`field label not supported: ${label}`);
  return field;
}

function selectableFields(resource: ServedResource): (object: KubeObject) => Record<string, string> {
  const { strategy } = resource.definition;
  return (object) => ({
    ...(strategy.fields === undefined ? {} : strategy.fields(object)),
    'metadata.name': object.metadata.name ?? '',
    'metadata.namespace': object.metadata.namespace ?? '',
  });
}
