/**
 * The messages that Kubernetes' typed clients send and get, read from `protobuf.generated.json` (see
 * hack/read-protobuf-fields.ts for its notation) and `protobuf-always.generated.json`. A message is parsed at its first
 * use.
 */
import { registeredKind } from '../builtin.ts';
import alwaysWritten from './protobuf-always.generated.json' with { type: 'json' };
import generated from './protobuf.generated.json' with { type: 'json' };

/** What a field holds: a scalar, or the name of a message (`core.v1.ServicePort`). */
export interface MessageField {
  /** Its name in JSON; undefined: the fields of the message are those of the object around it. */
  readonly name: string | undefined;
  readonly type: string;
  readonly shape: 'one' | 'list' | 'map';
  /** Go writes it where it is empty, too: a scalar that is no pointer, a message that is held by value. */
  readonly always: boolean;
}

/** Fields by their numbers. */
export type ProtobufMessage = ReadonlyMap<number, MessageField>;

const texts: Readonly<Record<string, string>> = generated;
const alwaysNumbers: Readonly<Record<string, readonly number[]>> = alwaysWritten;
const messages = new Map<string, ProtobufMessage>();

/** A message by its short name, undefined when there is none. */
export function protobufMessage(name: string): ProtobufMessage | undefined {
  const known = messages.get(name);
  if (known !== undefined) return known;
  const text = Object.hasOwn(texts, name) ? texts[name] : undefined;
  if (text === undefined) return undefined;
  const always = new Set(Object.hasOwn(alwaysNumbers, name) ? alwaysNumbers[name] : []);
  const message = new Map(text === '' ? [] : text.split(';').map((line) => parseField(line, always)));
  messages.set(name, message);
  return message;
}

/**
 * The message of a kind, undefined when it has none. Options of requests and Status are registered in every group
 * version, without a schema of their own there.
 */
export function messageOfKind(group: string, version: string, kind: string): string | undefined {
  const schema = registeredKind(group, version, kind)?.schema;
  const own = schema === undefined ? undefined : messageOfComponent(schema);
  if (own !== undefined && protobufMessage(own) !== undefined) return own;
  const alone = group === 'meta.k8s.io' ? metadataMessage(version, kind) : sharedMessage(group, kind);
  if (own === undefined && alone !== undefined && protobufMessage(alone) !== undefined) return alone;
  const item = kind.endsWith('List')
    ? messageOfKind(group, version, kind.slice(0, -'List'.length))
    : undefined;
  return item === undefined ? undefined : listMessage(item);
}

const metaKinds: ReadonlySet<string> = new Set([
  ...['DeleteOptions', 'Status', 'APIVersions', 'APIGroup', 'APIGroupList', 'APIResourceList'],
]);

/** The older version has a list of its own, but no item. */
function metadataMessage(version: string, kind: string): string {
  return `meta.${kind === 'PartialObjectMetadata' ? 'v1' : version}.${kind}`;
}

function sharedMessage(group: string, kind: string): string | undefined {
  if (metaKinds.has(kind)) return `meta.v1.${kind}`;
  return group === '' ? `core.v1.${kind}` : undefined;
}

/** All lists are alike. */
function listMessage(item: string): string {
  const name = `[]${item}`;
  if (!messages.has(name)) {
    messages.set(
      name,
      new Map([
        [1, { name: 'metadata', type: 'meta.v1.ListMeta', shape: 'one', always: true }],
        [2, { name: 'items', type: item, shape: 'list', always: false }],
      ]),
    );
  }
  return name;
}

/** The message of an OpenAPI component (`io.k8s.api.core.v1.Service`). */
function messageOfComponent(component: string): string {
  return component.replace(
    /^(io\.k8s\.(api|(apimachinery|apiextensions-apiserver|kube-aggregator)\.pkg\.apis)|com\.github\.openshift\.api)\./,
    '',
  );
}

function parseField(line: string, always: ReadonlySet<number>): [number: number, field: MessageField] {
  const [name = '', digits = '', type = ''] = line.split(' ');
  const number = Number(digits);
  const shape = type.startsWith('[]') ? 'list' : type.startsWith('{}') ? 'map' : 'one';
  return [
    number,
    {
      name: name === '+' ? undefined : name,
      type: shape === 'one' ? type : type.slice(2),
      shape,
      always: always.has(number),
    },
  ];
}
