import { registeredKind } from '../builtin.ts';
import alwaysWritten from './protobuf-always.generated.json' with { type: 'json' };
import generated from './protobuf.generated.json' with { type: 'json' };

/**
 * - Protocol buffers' wire format, with the error texts of gogo/protobuf, which reach clients inside 400 answers.
 * - The messages that Kubernetes' typed clients send and get, read from `protobuf.generated.json` (see
 *   hack/read-protobuf-fields.ts for its notation) and `protobuf-always.generated.json`. A message is parsed at its
 *   first use.
 */

/** Bytes that are no message. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError';
}

/** A field as it is on the wire: `bytes` for length-delimited and fixed ones, else `number`. */
export interface WireValue {
  readonly field: number;
  readonly wireType: number;
  readonly number: bigint;
  readonly bytes: Buffer;
}

const noBytes = Buffer.alloc(0);
const varint = 0;
const fixed64 = 1;
const delimited = 2;
const fixed32 = 5;

/** The fields of a message in the order in which they were sent. @throws {ProtobufError} */
export function* wireValues(bytes: Buffer): Generator<WireValue> {
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (shift >= 64n) throw new ProtobufError('proto: integer overflow');
      const byte = bytes[at++];
      if (byte === undefined) throw new ProtobufError('unexpected EOF');
      // most are one byte long
      if (byte < 128 && shift === 0n) return BigInt(byte);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
  };
  const take = (length: number): Buffer => {
    if (length > bytes.length - at) throw new ProtobufError('unexpected EOF');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = readVarint();
    const field = Number(BigInt.asIntN(32, key >> 3n));
    const wireType = Number(key & 7n);
    if (field <= 0) throw new ProtobufError(`proto: illegal tag ${field} (wire type ${key})`);
    if (wireType === varint) yield { field, wireType, number: readVarint(), bytes: noBytes };
    else if (wireType === delimited) {
      const length = readVarint();
      if (length > 0x7fffffffn) throw new ProtobufError('proto: negative length found during unmarshaling');
      yield { field, wireType, number: 0n, bytes: take(Number(length)) };
    } else if (wireType === fixed64) yield { field, wireType, number: 0n, bytes: take(8) };
    else if (wireType === fixed32) yield { field, wireType, number: 0n, bytes: take(4) };
    else throw new ProtobufError(`proto: illegal wireType ${wireType}`);
  }
}

/**
 * Writes Protocol buffers' wire format from the last byte to the first: the length of a message is known when it is
 * written, and nothing is copied. So fields are written in descending order, and the items of a list from behind.
 */
export class WireWriter {
  #bytes = Buffer.allocUnsafe(1024);
  /** The position of the last written byte. */
  #at = this.#bytes.length;

  /** The bytes so far, for `lengthFrom`. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  /** What was written. The writer must not be used after it. */
  take(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  /** The length and the tag of a field whose content was written since `length` was `before`. */
  delimit(field: number, before: number): void {
    this.#unsigned(this.length - before);
    this.#unsigned(field * 8 + 2);
  }

  text(field: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.#reserve(length);
    this.#at -= length;
    this.#bytes.write(text, this.#at, 'utf8');
    this.delimit(field, this.length - length);
  }

  bytes(field: number, bytes: Buffer): void {
    this.raw(bytes);
    this.delimit(field, this.length - bytes.length);
  }

  /** Bytes without a tag. */
  raw(bytes: Buffer): void {
    this.#reserve(bytes.length);
    this.#at -= bytes.length;
    bytes.copy(this.#bytes, this.#at);
  }

  /** A whole number as int32, int64 or bool: a negative one takes ten bytes. */
  integer(field: number, value: number): void {
    if (value >= 0) this.#unsigned(value);
    else this.#long(BigInt.asUintN(64, BigInt(value)));
    this.#unsigned(field * 8);
  }

  double(field: number, value: number): void {
    this.#reserve(8);
    this.#at -= 8;
    this.#bytes.writeDoubleLE(value, this.#at);
    this.#unsigned(field * 8 + 1);
  }

  /** At most 2^53. */
  #unsigned(value: number): void {
    if (value >= 2 ** 31) {
      this.#long(BigInt(value));
      return;
    }
    const size = value < 128 ? 1 : Math.ceil((32 - Math.clz32(value)) / 7);
    this.#reserve(size);
    this.#at -= size;
    let at = this.#at;
    let rest = value;
    for (; rest > 127; rest >>>= 7) this.#bytes[at++] = (rest & 127) | 128;
    this.#bytes[at] = rest;
  }

  #long(value: bigint): void {
    const digits: number[] = [];
    let rest = value;
    for (; rest > 127n; rest >>= 7n) digits.push(Number(rest & 127n) | 128);
    this.raw(Buffer.from([...digits, Number(rest)]));
  }

  /** Makes room in front. */
  #reserve(size: number): void {
    if (size <= this.#at) return;
    const used = this.length;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, used + size));
    this.#bytes.copy(larger, larger.length - used, this.#at);
    this.#at = larger.length - used;
    this.#bytes = larger;
  }
}

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
