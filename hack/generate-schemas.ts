/**
 * Writes src/apiserver/schema/builtin.generated.json from hack/openapi: `schemas.json` (kube-apiserver's OpenAPI
 * components without descriptions) and `go-fields.json` (what only the Go types say).
 *
 * Notation of go-fields.json, per type: the fields in struct order, each a name with marks behind it: `*` pointer,
 * `!` without omitempty although OpenAPI has no default for it, `~` with omitempty although OpenAPI has one, `@` a
 * value that prints null when empty, `:Type` the name of the Go type when it is not the plain one.
 *
 * The output has one text per type, read by src/apiserver/schema/builtin.ts on first use: a head line
 * `Name goType [atomic]`, then a line per field: `name flags type [option=value …]`. Flags: `p` kept when zero and
 * left out when absent, `o` left out when zero, `z` always written, `r` required.
 *
 * Run: node hack/generate-schemas.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';

import { isRecord, isStringList, type JsonRecord } from '../src/objects/json.ts';

const here = new URL('.', import.meta.url);
const output = new URL('../src/apiserver/schema/builtin.generated.json', here);

function readRecord(file: string): JsonRecord {
  const value: unknown = JSON.parse(readFileSync(new URL(file, here), 'utf8'));
  if (!isRecord(value)) throw new Error(`${file} is not an object`);
  return value;
}

function record(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** kube-apiserver's own, and those of further kinds and of what webhooks answer, written by hand in the same form. */
const schemas = {
  ...readRecord('openapi/schemas.json'),
  ...readRecord('openapi/more-schemas.json'),
  ...readRecord('openapi/unserved-schemas.json'),
};
const go = readRecord('openapi/go-fields.json');
const goTypes = record(go['types']);

/** Components that are no structs: the leaf that stands for them and their Go type. */
const leaves = new Map<string, readonly [leaf: string, goType: string]>([
  ['io.k8s.apimachinery.pkg.apis.meta.v1.Time', ['time', 'v1.Time']],
  ['io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime', ['microTime', 'v1.MicroTime']],
  ['io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1', ['fieldsV1', 'v1.FieldsV1']],
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', ['quantity', 'resource.Quantity']],
  ['io.k8s.apimachinery.pkg.util.intstr.IntOrString', ['intOrString', 'intstr.IntOrString']],
  ['io.k8s.apimachinery.pkg.runtime.RawExtension', ['any', 'runtime.RawExtension']],
  ...['JSON', 'JSONSchemaPropsOrArray', 'JSONSchemaPropsOrBool', 'JSONSchemaPropsOrStringArray'].map(
    (name) =>
      [
        `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.${name}`,
        [name === 'JSON' ? 'any' : name, `v1.${name}`],
      ] as const,
  ),
]);

/** `core.v1.ServiceSpec`, as go-fields.json names types. */
function shortName(component: string): string {
  return component.replace(/^(io\.k8s\.(api\.)?|com\.github\.openshift\.api\.)/, '');
}

function lastSegment(component: string): string {
  return component.slice(component.lastIndexOf('.') + 1);
}

function reference(property: JsonRecord): string | undefined {
  const allOf: unknown = property['allOf'];
  const first = Array.isArray(allOf) ? record(allOf[0]) : property;
  const ref = text(first['$ref']);
  return ref === '' ? undefined : ref.slice('#/components/schemas/'.length);
}

/** The type expression and Go type of a property. */
function typeOf(property: JsonRecord): readonly [expression: string, goType: string] {
  const ref = reference(property);
  if (ref !== undefined) return leaves.get(ref) ?? [`#${ref}`, `v1.${lastSegment(ref)}`];
  if (property['type'] === 'array') {
    const [item, goType] = typeOf(record(property['items']));
    return [`[]${item}`, `[]${goType}`];
  }
  if (property['type'] === 'object') {
    const [value, goType] = typeOf(record(property['additionalProperties']));
    return [`{}${value}`, `map[string]${goType}`];
  }
  if (property['type'] === 'string') {
    return property['format'] === 'byte' ? ['bytes', '[]uint8'] : ['string', 'string'];
  }
  if (property['type'] === 'boolean') return ['boolean', 'bool'];
  if (property['type'] === 'number') return ['number', 'float64'];
  if (property['type'] === 'integer') {
    const width = property['format'] === 'int32' ? 'int32' : 'int64';
    return [width, width];
  }
  return ['any', 'interface {}'];
}

/** The Go type with the name of go-fields.json put in the place of the innermost plain one. */
function namedGoType(plain: string, name: string): string {
  if (name === '') return plain;
  if (name.startsWith('map[')) return name;
  const qualified = name.includes('.') ? name : `v1.${name}`;
  return plain.startsWith('[]') ? `[]${qualified}` : qualified;
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false;
}

function flagsOf(property: JsonRecord, type: string, marks: string, required: boolean): string {
  const struct = type.startsWith('#');
  const collection = type.startsWith('[]') || type.startsWith('{}');
  const pointer = marks.includes('*');
  let flag: string;
  if (marks.includes('!') || marks.includes('@')) flag = 'z';
  else if (pointer) flag = 'p';
  else if (marks.includes('~')) flag = 'o';
  else if (struct) flag = 'default' in property ? 'z' : required ? 'z' : 'p';
  else if (['time', 'microTime', 'intOrString'].includes(type)) flag = 'z';
  else if (type === 'quantity') flag = 'z';
  else if (['any', 'fieldsV1'].includes(type) || type.startsWith('JSON')) flag = 'p';
  else if (collection) flag = required ? 'z' : 'o';
  else flag = isZero(property['default']) ? 'z' : 'o';
  return required ? `${flag}r` : flag;
}

function fieldLine(
  name: string,
  marks: string,
  goName: string,
  property: JsonRecord,
  required: boolean,
): string {
  const [type, plain] = typeOf(property);
  const flags = flagsOf(property, type, marks, required);
  const options: string[] = [];
  if (goName !== '') options.push(`go=${namedGoType(plain, goName)}`);
  // A struct that is written as `{}` differs from a nil pointer that is written as `null`.
  if (type.startsWith('#') && flags.startsWith('z') && !('default' in property)) options.push('null');
  else if (marks.includes('*') && flags.startsWith('z')) options.push('null');
  const listType = text(property['x-kubernetes-list-type']);
  if (listType !== '') options.push(`list=${listType}`);
  const keys: unknown = property['x-kubernetes-list-map-keys'];
  if (isStringList(keys)) options.push(`keys=${keys.join(',')}`);
  const mapType: unknown = property['x-kubernetes-map-type'];
  if (mapType === 'atomic' || (mapType === 'granular' && type.startsWith('#'))) options.push(mapType);
  const strategy = text(property['x-kubernetes-patch-strategy']);
  if (strategy !== '') options.push(`strategy=${strategy}`);
  const mergeKey = text(property['x-kubernetes-patch-merge-key']);
  if (mergeKey !== '') options.push(`merge=${mergeKey}`);
  const fallback: unknown = property['default'];
  if (fallback !== undefined) options.push(`default=${JSON.stringify(fallback)}`);
  return [name, flags, type, ...options].join(' ');
}

function typeText(component: string, schema: JsonRecord): string {
  const properties = record(schema['properties']);
  const required = isStringList(schema['required']) ? schema['required'] : [];
  const isKind = 'x-kubernetes-group-version-kind' in schema;
  const [version = '', name = ''] = component.split('.').slice(-2);
  const atomic = schema['x-kubernetes-map-type'] === 'atomic' ? ' atomic' : '';
  const lines = [`${name} ${version}.${name}${atomic}`];
  if (isKind) lines.push('kind o string', 'apiVersion o string');
  const plainOrder = Object.keys(properties).filter(
    (key) => !isKind || (key !== 'kind' && key !== 'apiVersion'),
  );
  // A list puts its metadata before its items; a type without a known order is alphabetical.
  if (name.endsWith('List')) plainOrder.sort((a, b) => Number(a === 'items') - Number(b === 'items'));
  const order = text(goTypes[shortName(component)]) || plainOrder.join(' ');
  for (const token of order === '' ? [] : order.split(' ')) {
    const [, field = '', marks = '', goName = ''] = /^([^*!~:@]+)([*!~@]*):?(.*)$/.exec(token) ?? [];
    if (!Object.hasOwn(properties, field)) throw new Error(`${component} has no field ${field}`);
    lines.push(fieldLine(field, marks, goName, record(properties[field]), required.includes(field)));
  }
  if (lines.length - 1 !== plainOrder.length + (isKind ? 2 : 0))
    throw new Error(`${component}: fields missing`);
  return lines.join('\n');
}

const types: Record<string, string> = {};
/** `apiVersion Kind` → `internal package, component or "-"`. */
const kinds: Record<string, string> = {};
const internalPackages = record(go['internalPackages']);
const metaKinds = isStringList(go['metaKinds']) ? go['metaKinds'] : [];

function addKind(apiVersion: string, kind: string, component: string): void {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  const key = `${apiVersion} ${kind}`;
  const own = text(record(go['internalPackageOf'])[key]);
  if (!(key in kinds)) kinds[key] = `${own === '' ? text(internalPackages[group]) : own} ${component}`;
}

for (const [component, schema] of Object.entries(schemas)) {
  if (!isRecord(schema) || leaves.has(component)) continue;
  types[component] = typeText(component, schema);
  const gvks: unknown = schema['x-kubernetes-group-version-kind'];
  for (const gvk of Array.isArray(gvks) ? gvks.map(record) : []) {
    const group = text(gvk['group']);
    const version = text(gvk['version']);
    const apiVersion = group === '' ? version : `${group}/${version}`;
    addKind(apiVersion, text(gvk['kind']), component);
    for (const kind of metaKinds) addKind(apiVersion, kind, '-');
  }
}
for (const [apiVersion, list] of Object.entries(record(go['kindsWithoutSchema']))) {
  for (const kind of isStringList(list) ? list : []) addKind(apiVersion, kind, '-');
  for (const kind of metaKinds) addKind(apiVersion, kind, '-');
}
writeFileSync(output, `${JSON.stringify({ types, kinds })}\n`);
