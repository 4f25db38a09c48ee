/**
 * JSON Patch (RFC 6902) with the behaviour of the library that kube-apiserver uses (evanphx/json-patch v4): paths lose
 * everything before their first slash, `replace` accepts a missing member, negative list positions count from the end,
 * and a `test` for null holds where nothing is and for a string only where it is spelt as Go spells it.
 */
import { isRecord } from '../../objects/json.ts';
import { tooLarge } from '../../objects/status.ts';
import { RawNumber } from '../schema/json.ts';
import { setMember } from '../schema/schema.ts';

/** Operations in one patch (apiserver `endpoints/handlers/patch.go` maxJSONPatchOperations). */
const maxOperations = 10_000;
/** Bytes that `copy` may add up to (JSONPatchMaxCopyBytes). */
const maxCopiedBytes = 3 * 1024 * 1024;

/** An operation that cannot be carried out. */
export class PatchOperationError extends Error {
  override readonly name = 'PatchOperationError';
}

type Container = unknown[] | Record<string, unknown>;

/**
 * Applies a patch to a document, which it changes, and returns the result: the document, or what replaced it.
 *
 * @param patch a list of operations, or null.
 * @param misspelt strings of the patch that no `test` finds: the library compares texts.
 * @throws {StatusError} 413 when the patch is too long.
 * @throws {PatchOperationError} when an operation fails.
 */
export function applyJsonPatch(
  document: Record<string, unknown>,
  patch: unknown,
  misspelt: ReadonlySet<string> = new Set(),
): unknown {
  const operations: readonly unknown[] = Array.isArray(patch) ? patch : [];
  if (operations.length > maxOperations) {
    throw tooLarge(
      `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${operations.length}`,
    );
  }
  const run = new JsonPatchRun(document, misspelt);
  for (const operation of operations) run.apply(isRecord(operation) ? operation : {});
  return run.finish();
}

class JsonPatchRun {
  #document: Container;
  readonly #misspelt: ReadonlySet<string>;
  #copiedBytes = 0;
  /** Objects that a path went through: the library reads them into maps, and writes those sorted. */
  readonly #opened = new Set<Record<string, unknown>>();

  constructor(document: Record<string, unknown>, misspelt: ReadonlySet<string>) {
    this.#document = document;
    this.#misspelt = misspelt;
    this.#opened.add(document);
  }

  finish(): unknown {
    for (const object of this.#opened) sortMembers(object);
    return this.#document;
  }

  apply(operation: Record<string, unknown>): void {
    const path = text(operation, 'path');
    switch (operation['op']) {
      case 'add': {
        this.#add(path, operation['value'] ?? null);
        return;
      }
      case 'remove': {
        this.#remove(path);
        return;
      }
      case 'replace': {
        this.#replace(path, operation['value'] ?? null);
        return;
      }
      case 'move': {
        const from = text(operation, 'from');
        const value = this.#read(from);
        this.#remove(from);
        this.#add(path, value ?? null);
        return;
      }
      case 'copy': {
        this.#copy(text(operation, 'from'), path);
        return;
      }
      case 'test': {
        this.#test(path, operation['value'] ?? null);
        return;
      }
      default:
        throw new PatchOperationError(`Unexpected kind: ${JSON.stringify(operation['op'] ?? 'unknown')}`);
    }
  }

  #add(path: string, value: unknown): void {
    const { container, key } = this.#find(path);
    if (!Array.isArray(container)) setMember(container, key, value);
    else if (key === '-') container.push(value);
    else container.splice(position(key, container.length + 1), 0, value);
  }

  #remove(path: string): void {
    const { container, key } = this.#find(path);
    if (Array.isArray(container)) container.splice(position(key, container.length), 1);
    else if (!Object.hasOwn(container, key) || !Reflect.deleteProperty(container, key)) {
      throw new PatchOperationError(`Unable to remove nonexistent key: ${key}`);
    }
  }

  #replace(path: string, value: unknown): void {
    if (path === '') {
      if (!isContainer(value)) {
        throw new PatchOperationError('replace operation value must be object or array');
      }
      this.#document = value;
      return;
    }
    const { container, key } = this.#find(path);
    if (Array.isArray(container)) container[position(key, container.length)] = value;
    else setMember(container, key, value);
  }

  #copy(from: string, path: string): void {
    const value = this.#read(from) ?? null;
    const copied = JSON.stringify(value);
    this.#copiedBytes += Buffer.byteLength(copied);
    if (this.#copiedBytes > maxCopiedBytes) {
      throw new PatchOperationError(
        `Unable to complete the copy, the accumulated size increase of copy is ${this.#copiedBytes}, exceeding the limit ${maxCopiedBytes}`,
      );
    }
    this.#add(path, structuredCopy(value));
  }

  #test(path: string, expected: unknown): void {
    const found = path === '' ? this.#document : (this.#read(path) ?? null);
    if (!sameJson(found, expected, this.#misspelt)) {
      throw new PatchOperationError(`testing value ${path} failed`);
    }
  }

  #read(path: string): unknown {
    const { container, key } = this.#find(path);
    if (Array.isArray(container)) return container[position(key, container.length)];
    return Object.hasOwn(container, key) ? container[key] : undefined;
  }

  /** The container that a path ends in. */
  #find(path: string): { container: Container; key: string } {
    const segments = path.split('/').slice(1).map(unescape);
    const key = segments.pop();
    if (key === undefined) throw new PatchOperationError(`doc is missing path: ${path}`);
    let container: Container = this.#document;
    for (const segment of segments) {
      const next: unknown = Array.isArray(container)
        ? container[position(segment, container.length)]
        : Object.hasOwn(container, segment)
          ? container[segment]
          : undefined;
      if (!isContainer(next)) throw new PatchOperationError(`doc is missing path: ${path}`);
      if (!Array.isArray(next)) this.#opened.add(next);
      container = next;
    }
    return { container, key };
  }
}

function isContainer(value: unknown): value is Container {
  return Array.isArray(value) || (isRecord(value) && !(value instanceof RawNumber));
}

function sortMembers(object: Record<string, unknown>): void {
  const members = Object.entries(object);
  if (members.every(([key], i) => i === 0 || (members[i - 1]?.[0] ?? '') < key)) return;
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [key] of members) Reflect.deleteProperty(object, key);
  for (const [key, value] of members) setMember(object, key, value);
}

function text(operation: Record<string, unknown>, member: string): string {
  const value = operation[member];
  if (typeof value !== 'string') throw new PatchOperationError(`failed to decode ${member}`);
  return value;
}

function unescape(segment: string): string {
  return segment.includes('~') ? segment.replaceAll('~1', '/').replaceAll('~0', '~') : segment;
}

/** A position among `length` places; negative ones count from the end. */
function position(key: string, length: number): number {
  if (!/^[+-]?\d{1,15}$/.test(key)) {
    throw new PatchOperationError(`value was not a proper array index: '${key}'`);
  }
  const index = Number(key);
  if (index >= length || index < -length) {
    throw new PatchOperationError(`Unable to access invalid index: ${index}`);
  }
  return index < 0 ? index + length : index;
}

function structuredCopy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(structuredCopy);
  if (!isRecord(value) || value instanceof RawNumber) return value;
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) setMember(copy, key, structuredCopy(member));
  return copy;
}

/** Equality of JSON texts: scalars are compared as they are spelt, the order of members does not count. */
function sameJson(a: unknown, b: unknown, misspelt: ReadonlySet<string>): boolean {
  if (a instanceof RawNumber || b instanceof RawNumber) {
    return a instanceof RawNumber && b instanceof RawNumber && a.literal === b.literal;
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i], misspelt));
  }
  if (!isRecord(a)) return a === b && !(typeof b === 'string' && misspelt.has(b));
  if (!isRecord(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key], misspelt))
  );
}
