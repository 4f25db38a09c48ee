/**
 * The messages that Kubernetes' typed clients send, read from `protobuf.generated.json` (see
 * hack/read-protobuf-fields.ts for its notation). A message is parsed when it is first asked for.
 */
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

/** The message of an OpenAPI component (`io.k8s.api.core.v1.Service`). */
export function messageOfComponent(component: string): string {
  return component.replace(
    /^io\.k8s\.(api|apimachinery\.pkg\.apis|apiextensions-apiserver\.pkg\.apis)\./,
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
