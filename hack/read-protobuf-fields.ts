/**
 * Writes src/apiserver/schema/protobuf/protobuf.generated.json: the field numbers of the messages that clients may send. They
 * are taken from a kubectl, a Go program that carries a descriptor of every generated.proto it knows (gzipped
 * FileDescriptorProtos). What is newer than that kubectl, or not in it, is in openapi/more-protobuf.json, in the form
 * of the output.
 *
 * The output has one text per message: fields parted by `;`, each `name number type`. The name is the one in JSON, or
 * `+` for a message whose fields are inlined there. The type is a scalar (`string`, `bytes`, `bool`, `int`, `double`)
 * or a message, with `[]` before it for a list and `{}` for a map with text keys.
 *
 * Run: node hack/read-protobuf-fields.ts /usr/bin/kubectl
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import generated from '../src/apiserver/schema/builtin.generated.json' with { type: 'json' };

const here = new URL('.', import.meta.url);
const output = new URL('../src/apiserver/schema/protobuf/protobuf.generated.json', here);
const more = new URL('openapi/more-protobuf.json', here);

interface WireField {
  readonly number: number;
  readonly value: number;
  readonly bytes: Buffer;
}

function varint(bytes: Buffer, start: number): [value: number, end: number] {
  let value = 0;
  for (let at = start, scale = 1; ; at++, scale *= 128) {
    const byte = bytes[at];
    if (byte === undefined || scale > 2 ** 50) throw new Error('no varint');
    value += (byte & 127) * scale;
    if (byte < 128) return [value, at + 1];
  }
}

/** Descriptors hold varints and length-delimited fields only. */
function fieldsOf(bytes: Buffer): WireField[] {
  const fields: WireField[] = [];
  for (let at = 0; at < bytes.length;) {
    const [key, afterKey] = varint(bytes, at);
    const [value, end] = varint(bytes, afterKey);
    const number = Math.floor(key / 8);
    if (key % 8 === 0) {
      fields.push({ number, value, bytes: Buffer.alloc(0) });
      at = end;
    } else if (key % 8 === 2) {
      fields.push({ number, value: 0, bytes: bytes.subarray(end, end + value) });
      at = end + value;
    } else throw new Error('no descriptor');
  }
  return fields;
}

const textOf = (fields: readonly WireField[], number: number): string =>
  fields.find((field) => field.number === number)?.bytes.toString() ?? '';
const numberOf = (fields: readonly WireField[], number: number): number =>
  fields.find((field) => field.number === number)?.value ?? 0;
const allOf = (fields: readonly WireField[], number: number): WireField[][] =>
  fields.filter((field) => field.number === number).map(({ bytes }) => fieldsOf(bytes));

interface ProtoField {
  readonly name: string;
  readonly number: number;
  readonly type: number;
  readonly message: string;
  readonly repeated: boolean;
}

const messages = new Map<string, ProtoField[]>();

/** `.k8s.io.api.core.v1.Service` is `core.v1.Service`. */
function shortName(name: string): string {
  return name
    .replace(/^\./, '')
    .replace(/^k8s\.io\.(api|apimachinery\.pkg\.apis|apimachinery\.pkg|apimachinery\.pkg\.api)\./, '');
}

function addMessage(descriptor: readonly WireField[], prefix: string): void {
  const name = `${prefix}.${textOf(descriptor, 1)}`;
  const fields = allOf(descriptor, 2).map((field) => ({
    name: textOf(field, 1),
    number: numberOf(field, 3),
    type: numberOf(field, 5),
    message: textOf(field, 6),
    repeated: numberOf(field, 4) === 3,
  }));
  messages.set(shortName(name), fields);
  for (const nested of allOf(descriptor, 3)) addMessage(nested, name);
}

function readProgram(program: Buffer): void {
  const gzip = Buffer.from([0x1f, 0x8b, 0x08]);
  for (let at = program.indexOf(gzip); at >= 0; at = program.indexOf(gzip, at + 1)) {
    let file: WireField[];
    try {
      file = fieldsOf(gunzipSync(program.subarray(at, at + 400_000), { maxOutputLength: 2 ** 20 }));
    } catch {
      continue;
    }
    if (!textOf(file, 1).startsWith('k8s.io/')) continue;
    for (const message of allOf(file, 4)) addMessage(message, textOf(file, 2));
  }
}

const scalars = new Map([
  [1, 'double'],
  [3, 'int'],
  [5, 'int'],
  [8, 'bool'],
  [9, 'string'],
  [12, 'bytes'],
]);
const messageType = 11;

function typeOf(field: ProtoField): string {
  if (field.type !== messageType) return scalars.get(field.type) ?? '';
  const name = shortName(field.message);
  const [key, value] = messages.get(name) ?? [];
  if (name.endsWith('Entry') && key?.name === 'key' && value?.name === 'value') return `{}${typeOf(value)}`;
  return `${field.repeated ? '[]' : ''}${name}`;
}

/** Messages whose fields Go's types, and so JSON, have in the struct around them. */
const inlined = new Set([
  'ephemeralContainerCommon',
  'handler',
  'ingressRuleValue',
  'localObjectReference',
  'persistentVolumeSource',
  'rule',
  'ruleWithOperations',
  'volumeSource',
]);

/** The names in JSON of the fields of a type, by their lower-case form; undefined for messages of Go only. */
function jsonNames(message: string): Map<string, string> | undefined {
  const component = [`io.k8s.api.${message}`, `io.k8s.apimachinery.pkg.apis.${message}`].find((name) =>
    Object.hasOwn(generated.types, name),
  );
  const text = Object.entries(generated.types).find(([name]) => name === component)?.[1];
  const names = text
    ?.split('\n')
    .slice(1)
    .map((line) => line.split(' ')[0] ?? '');
  return names === undefined ? undefined : new Map(names.map((name) => [name.toLowerCase(), name]));
}

function messageText(message: string, fields: readonly ProtoField[]): string {
  const names = jsonNames(message);
  const lines = fields.map((field) => {
    const type = typeOf(field);
    const known = names?.get(field.name.toLowerCase());
    const inline = known === undefined && field.type === messageType && inlined.has(field.name);
    const list = field.repeated && !type.startsWith('{}') && !type.startsWith('[]') ? '[]' : '';
    return `${inline ? '+' : (known ?? field.name)} ${field.number} ${list}${type}`;
  });
  return lines.join(';');
}

const [, , program] = process.argv;
if (program === undefined) throw new Error('name a kubectl');
readProgram(readFileSync(program));

const texts = new Map([...messages].map(([name, fields]) => [name, messageText(name, fields)]));
const additions: unknown = JSON.parse(readFileSync(more, 'utf8'));
for (const [name, text] of Object.entries(additions ?? {})) {
  if (typeof text !== 'string') throw new Error(`${name} is no text`);
  const older = texts.get(name);
  // The fields of a type that moved to another version are those that it had: `=networking.v1beta1.IPAddress`.
  const copied = text.startsWith('=')
    ? texts.get(text.slice(1))?.replaceAll(/\bv1(alpha|beta)\d\b/g, 'v1')
    : text;
  if (copied === undefined) throw new Error(`${name}: there is no ${text}`);
  texts.set(name, [older, copied].filter((part) => part !== undefined && part !== '').join(';'));
}

/** Types of meta.k8s.io that only answers have. */
const answers = [
  'meta.v1.APIGroup',
  'meta.v1.APIGroupList',
  'meta.v1.APIVersions',
  'meta.v1.PartialObjectMetadata',
  'meta.v1.PartialObjectMetadataList',
  'meta.v1beta1.PartialObjectMetadataList',
];

/** Only what the built-in types and the answers lead to is kept. */
const kept: Record<string, string> = {};
const builtIn = Object.keys(generated.types).map((name) =>
  name.replace(
    /^(io\.k8s\.(api|apimachinery\.pkg\.apis|apiextensions-apiserver\.pkg\.apis|kube-aggregator\.pkg\.apis)|com\.github\.openshift\.api)\./,
    '',
  ),
);
const queue = [...builtIn, ...answers].filter((name) => texts.has(name));
for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
  const text = texts.get(name);
  if (text === undefined || name in kept) continue;
  kept[name] = text;
  for (const field of text.split(';')) queue.push((field.split(' ')[2] ?? '').replace(/^(\[\]|\{\})+/, ''));
}
const sorted = Object.fromEntries(Object.entries(kept).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(output, `${JSON.stringify(sorted)}\n`);
