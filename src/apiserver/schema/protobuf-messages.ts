/**
 * The messages that Kubernetes' typed clients send and get, read from `protobuf.generated.json` (see
 * hack/read-protobuf-fields.ts for its notation). A message is parsed when it is first asked for.
 */
import { registeredKind } from './builtin.ts';
import generated from './protobuf.generated.json' with { type: 'json' };

/** What a field holds: a scalar, or the name of a message (`core.v1.ServicePort`). */
export interface MessageField {
  /** Its name in JSON; undefined: the fields of the message are those of the object around it. */
  readonly name: string | undefined;
  readonly type: string;
  readonly shape: 'one' | 'list' | 'map';
}

/** Fields by their numbers. */
export type Message = ReadonlyMap<number, MessageField>;

const texts: Readonly<Record<string, string>> = generated;
const messages = new Map<string, Message>();

/** A message by its short name, undefined when there is none. */
export function protobufMessage(name: string): Message | undefined {
  const known = messages.get(name);
  if (known !== undefined) return known;
  const text = Object.hasOwn(texts, name) ? texts[name] : undefined;
  if (text === undefined) return undefined;
  const message = new Map(text === '' ? [] : text.split(';').map(parseField));
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
  const alone = group === 'meta.k8s.io' ? metadataMessage(version, kind) : sharedMessage(kind);
  if (own === undefined && protobufMessage(alone) !== undefined) return alone;
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

function sharedMessage(kind: string): string {
  return metaKinds.has(kind) ? `meta.v1.${kind}` : `core.v1.${kind}`;
}

/** All lists are alike. */
function listMessage(item: string): string {
  const name = `[]${item}`;
  if (!messages.has(name)) {
    messages.set(
      name,
      new Map([
        [1, { name: 'metadata', type: 'meta.v1.ListMeta', shape: 'one' }],
        [2, { name: 'items', type: item, shape: 'list' }],
      ]),
    );
  }
  return name;
}

/** The message of an OpenAPI component (`io.k8s.api.core.v1.Service`). */
function messageOfComponent(component: string): string {
  return component.replace(
    /^io\.k8s\.(api|(apimachinery|apiextensions-apiserver|kube-aggregator)\.pkg\.apis)\./,
    '',
  );
}

function parseField(line: string): [number: number, field: MessageField] {
  const [name = '', number = '', type = ''] = line.split(' ');
  const shape = type.startsWith('[]') ? 'list' : type.startsWith('{}') ? 'map' : 'one';
  return [
    Number(number),
    { name: name === '+' ? undefined : name, type: shape === 'one' ? type : type.slice(2), shape },
  ];
}
