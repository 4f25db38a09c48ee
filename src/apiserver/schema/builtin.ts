import generated from './builtin.generated.json' with { type: 'json' };
import type { Field, LeafType, ListSchema, Schema, StructSchema } from './schema.ts';
import { isRecord } from '../../objects/json.ts';
import { RawNumber } from './json.ts';

/**
 * - The schemas of the built-in types, read from `builtin.generated.json` (see hack/generate-schemas.ts for its
 *   notation). A type is parsed at its first use, so that the start costs one JSON.parse.
 * - Finds apiVersion and kind of a body, as apimachinery's SimpleMetaFactory and gvkWithDefaults do.
 */

/** A kind in the server's scheme. */
export interface RegisteredKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Go package of the internal type (`core`): kinds of other versions convert to it. */
  readonly internalPackage: string;
  /** OpenAPI component name, undefined for kinds without a schema. */
  readonly schema: string | undefined;
}

const types: Readonly<Record<string, string>> = generated.types;
const kinds: Readonly<Record<string, string>> = generated.kinds;
const structs = new Map<string, StructSchema>();

/**
 * The schema of a built-in type by its OpenAPI component name (`io.k8s.api.core.v1.Service`); the same object at
 * every call. @throws {Error} when there is no such type: a fault of the program.
 */
export function builtinSchema(name: string): StructSchema {
  let schema = structs.get(name);
  if (schema === undefined) {
    const text = Object.hasOwn(types, name) ? types[name] : undefined;
    if (text === undefined) throw new Error(`there is no built-in type ${name}`);
    schema = parseStruct(text);
    structs.set(name, schema);
  }
  return schema;
}

/** The registered kind, or undefined: what Go's scheme answers. */
export function registeredKind(group: string, version: string, kind: string): RegisteredKind | undefined {
  return lookUp(group === '' ? version : `${group}/${version}`, kind);
}

/** The schema of a registered kind; undefined for other kinds, and for those that are known only by name. */
export function registeredSchema(apiVersion: string, kind: string): StructSchema | undefined {
  const schema = lookUp(apiVersion, kind)?.schema;
  return schema === undefined ? undefined : builtinSchema(schema);
}

/** Kinds that were looked up: most requests use a few of them. */
const known = new Map<string, RegisteredKind>();

function lookUp(apiVersion: string, kind: string): RegisteredKind | undefined {
  const key = `${apiVersion} ${kind}`;
  let found = known.get(key);
  if (found !== undefined) return found;
  const entry = Object.hasOwn(kinds, key) ? kinds[key] : undefined;
  if (entry === undefined) return undefined;
  const slash = apiVersion.indexOf('/');
  const [internalPackage = '', component = '-'] = entry.split(' ');
  found = {
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
    kind,
    internalPackage,
    schema: component === '-' ? undefined : component,
  };
  known.set(key, found);
  return found;
}

function parseStruct(text: string): StructSchema {
  const [head = '', ...lines] = text.split('\n');
  const [name = '', goType = '', atomic] = head.split(' ');
  const fields = lines.map(parseField);
  const byName = new Map(fields.map((field) => [field.name, field]));
  return { type: 'struct', name, goType, fields, byName, atomic: atomic === 'atomic', custom: undefined };
}

function parseField(line: string): Field {
  const [name = '', flags = '', type = '', ...words] = line.split(' ');
  const options = new Map<string, string>();
  for (const word of words) {
    const cut = word.indexOf('=');
    if (cut < 0) options.set(word, '');
    else options.set(word.slice(0, cut), word.slice(cut + 1));
  }
  const written = flags.startsWith('z');
  const emptyIsNull = /^(\[\]|\{\}|time|microTime)/.test(type);
  const nullable = options.has('null') || emptyIsNull || type === 'any';
  const fallback = options.get('default');
  let resolved: Schema | undefined;
  return {
    name,
    get schema() {
      resolved ??= parseType(type, options);
      return resolved;
    },
    absent: written ? (nullable ? 'null' : 'zero') : 'omit',
    dropZero: flags.startsWith('o') || (written && emptyIsNull),
    required: flags.endsWith('r'),
    default: fallback === undefined ? undefined : (JSON.parse(fallback) as unknown),
    patchStrategy: options.get('strategy')?.split(',') ?? [],
    patchMergeKey: options.get('merge'),
  };
}

const plainGoTypes = new Map<string, string>([
  ['string', 'string'],
  ['boolean', 'bool'],
  ['int32', 'int32'],
  ['int64', 'int64'],
  ['number', 'float64'],
  ['bytes', '[]uint8'],
  ['time', 'v1.Time'],
  ['microTime', 'v1.MicroTime'],
  ['intOrString', 'intstr.IntOrString'],
  ['quantity', 'resource.Quantity'],
  ['any', 'interface {}'],
  ['fieldsV1', 'v1.FieldsV1'],
] satisfies [LeafType, string][]);

function isLeafType(type: string): type is LeafType {
  return plainGoTypes.has(type);
}

const noOptions = new Map<string, string>();
const schemaProps = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps';

function parseType(type: string, options: ReadonlyMap<string, string>): Schema {
  const goType = options.get('go');
  if (type.startsWith('#')) {
    const struct = builtinSchema(type.slice(1));
    // A field may have another map type than its struct (`+structType` of the field in Go).
    const atomic = options.has('atomic') || (struct.atomic && !options.has('granular'));
    return atomic === struct.atomic ? struct : { ...struct, atomic };
  }
  if (type.startsWith('[]')) {
    const items = parseType(type.slice(2), innerOptions(goType, '[]'));
    return {
      type: 'list',
      goType: goType ?? `[]${items.goType}`,
      items,
      listType: listTypeOf(options.get('list')),
      mapKeys: options.get('keys')?.split(',') ?? [],
    };
  }
  if (type.startsWith('{}')) {
    const values = parseType(type.slice(2), innerOptions(goType, 'map[string]'));
    return {
      type: 'map',
      goType: goType ?? `map[string]${values.goType}`,
      values,
      atomic: options.has('atomic'),
    };
  }
  if (isLeafType(type)) return { type, goType: goType ?? plainGoTypes.get(type) ?? type };
  const other = unionAlternatives.get(type);
  if (other === undefined) throw new Error(`there is no type ${type}`);
  return { type: 'union', goType: `v1.${type}`, object: builtinSchema(schemaProps), other };
}

const unionAlternatives = new Map<string, 'boolean' | 'structs' | 'strings'>([
  ['JSONSchemaPropsOrBool', 'boolean'],
  ['JSONSchemaPropsOrArray', 'structs'],
  ['JSONSchemaPropsOrStringArray', 'strings'],
]);

/** The Go type of a list or map carries the one of its elements. */
function innerOptions(goType: string | undefined, prefix: string): ReadonlyMap<string, string> {
  return goType?.startsWith(prefix) === true ? new Map([['go', goType.slice(prefix.length)]]) : noOptions;
}

function listTypeOf(word: string | undefined): ListSchema['listType'] {
  return word === 'set' || word === 'map' ? word : 'atomic';
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A body whose apiVersion or kind cannot be read; the message is apimachinery's. */
export class VersionKindError extends Error {
  override readonly name = 'VersionKindError';
}

/** `v1`, or `discovery.k8s.io/v1`. */
export function versionText({ group, version }: { group: string; version: string }): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Kind and version of a body, completed from `defaults`. @throws {VersionKindError} */
export function interpretKind(value: unknown, defaults: GroupVersionKind): GroupVersionKind {
  const { apiVersion, kind } = readVersionKind(value);
  const { group, version } = parseVersion(apiVersion);
  if (group === '' && version === '') {
    return { group: defaults.group, version: defaults.version, kind: kind === '' ? defaults.kind : kind };
  }
  return {
    group,
    version: version === '' && group === defaults.group ? defaults.version : version,
    kind: kind === '' ? defaults.kind : kind,
  };
}

/** Splits an apiVersion. @throws {VersionKindError} when it has more than one slash. */
export function parseVersion(apiVersion: string): { group: string; version: string } {
  const cut = apiVersion.indexOf('/');
  if (cut < 0) return { group: '', version: apiVersion };
  if (apiVersion === '/') return { group: '', version: '' };
  if (apiVersion.includes('/', cut + 1)) {
    throw new VersionKindError(`unexpected GroupVersion string: ${apiVersion}`);
  }
  return { group: apiVersion.slice(0, cut), version: apiVersion.slice(cut + 1) };
}

const goStruct =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/** encoding/json matches names without regard to case here, unlike in the body itself. */
function readVersionKind(value: unknown): { apiVersion: string; kind: string } {
  const found = { apiVersion: '', kind: '' };
  if (value === null || value === undefined) return found;
  if (!isRecord(value) || value instanceof RawNumber) {
    throw parseError(`cannot unmarshal ${jsonTypeName(value)} into Go value of type ${goStruct}`);
  }
  for (const key of Object.keys(value)) {
    if (key.length !== 4 && key.length !== 10) continue;
    const lower = key.toLowerCase();
    const name = lower === 'kind' ? 'kind' : lower === 'apiversion' ? 'apiVersion' : undefined;
    const member = value[key];
    if (name === undefined || member === null) continue;
    if (typeof member !== 'string') {
      throw parseError(
        `cannot unmarshal ${jsonTypeName(member)} into Go struct field .${name} of type string`,
      );
    }
    found[name] = member;
  }
  return found;
}

function parseError(text: string): VersionKindError {
  return new VersionKindError(`couldn't get version/kind; json parse error: json: ${text}`);
}

/** How Go names the type of a JSON value in its errors. */
export function jsonTypeName(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number' || value instanceof RawNumber) return 'number';
  return typeof value === 'string' ? 'string' : 'object';
}
