import { posix } from 'node:path';
import { isRecord } from '../../objects/json.ts';
import { decodeBase64Url } from '../../objects/formats/go-text.ts';
import { badRequest, resourceVersionTooLarge, type StatusError, expired } from '../../objects/status.ts';
import { parseJson, JsonSyntaxError, RawNumber } from '../schema/json.ts';
import { jsonTypeName } from '../schema/builtin.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServedResource, storageKeyOf, storagePrefixOf, presented } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import type { ListMeta } from '../../objects/meta.ts';
import { CompactedError, type ListResult, type StoredObject } from '../storage/storage.ts';
import { type ListOptions, parseResourceVersion } from './options.ts';
import type { ListFilter } from './output.ts';
import { TimeSlice } from '../../telemetry/time-slice.ts';

/** The position at which a chunked list continues (apiserver `storage/continue.go`). */
export interface ContinueToken {
  /** The revision of the first page; -1: go on at the newest state, consistency is lost. */
  readonly revision: number;
  /**
   * The first key of the next page, relative to the listed keys; in tokens of the server the last key of the page and a NUL.
   */
  readonly start: string;
}

/** The token as clients see it: base64url without padding of its JSON. */
export function encodeContinue(token: ContinueToken): string {
  const json = JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: token.start });
  return Buffer.from(json).toString('base64url');
}

/** @throws {StatusError} 400 with kube-apiserver's words for tokens that are none (`storage.DecodeContinue`). */
export function decodeContinue(text: string): ContinueToken {
  const bytes = decodeBase64Url(text);
  if (typeof bytes === 'number') throw invalidToken(`illegal base64 data at input byte ${bytes}`);
  const { version, revision, start } = readToken(bytes);
  if (version !== 'meta.k8s.io/v1') {
    throw invalidToken(`server does not recognize this encoded version ${version}`);
  }
  if (revision === 0) {
    throw invalidToken('incorrect encoded start resourceVersion (version meta.k8s.io/v1)');
  }
  if (start === '') throw invalidToken('encoded start key empty (version meta.k8s.io/v1)');
  // A start key must be below the prefix, and in the store's spelling.
  const key = start.startsWith('/') ? start : `/${start}`;
  if (cleaned(key) !== key) throw invalidToken(start);
  return { revision, start: key.slice(1) };
}

interface WrittenToken {
  readonly version: string;
  readonly revision: number;
  readonly start: string;
}

/** The JSON as Go's encoding/json reads it into its struct: names in any case, null for what is not there. */
function readToken(bytes: Buffer): WrittenToken {
  let value: unknown;
  try {
    ({ value } = parseJson(bytes));
  } catch (error) {
    throw error instanceof JsonSyntaxError ? invalidToken(error.message) : error;
  }
  if (value !== null && !(isRecord(value) && !(value instanceof RawNumber))) {
    throw mismatch(value, 'value of type storage.continueToken');
  }
  let [version, revision, start] = ['', 0, ''];
  for (const [name, member] of Object.entries(value ?? {})) {
    if (member === null) continue;
    const lower = name.toLowerCase();
    if (lower === 'v') version = textOf(member, 'v');
    else if (lower === 'rv') revision = integerOf(member);
    else if (lower === 'start') start = textOf(member, 'start');
  }
  return { version, revision, start };
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw mismatch(value, `struct field continueToken.${field} of type string`);
  return value;
}

function integerOf(value: unknown): number {
  const literal = value instanceof RawNumber ? value.literal : String(value);
  const isNumber = value instanceof RawNumber || typeof value === 'number';
  const number = isNumber && /^-?\d+$/.test(literal) ? BigInt(literal) : undefined;
  if (number !== undefined && BigInt.asIntN(64, number) === number) return Number(number);
  throw mismatch(value, 'struct field continueToken.rv of type int64', isNumber ? ` ${literal}` : '');
}

function mismatch(value: unknown, into: string, literal = ''): Error {
  const type = value instanceof RawNumber ? 'number' : jsonTypeName(value);
  return invalidToken(`json: cannot unmarshal ${type}${literal} into Go ${into}`);
}

/** Go's `path.Clean`, which keeps no slash at the end. */
function cleaned(key: string): string {
  const normal = posix.normalize(key);
  return normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal;
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}

/** Milliseconds that a read waits for a resourceVersion in the future (`blockTimeout` of the watch cache). */
const futureTimeoutMs = 3000;
const pollIntervalMs = 20;

/**
 * Waits until the store has reached a revision that a client named.
 * @throws {StatusError} 504 after three seconds, of what is not cached at once.
 */
export async function waitForRevision(
  core: ServerCore,
  resource: ServedResource,
  revision: bigint,
  signal: AbortSignal,
): Promise<void> {
  if (core.storage.revision >= revision) return;
  if (resource.definition.uncached === true) {
    throw resourceVersionTooLarge(revision, core.storage.revision, 0);
  }
  const deadline = core.now() + futureTimeoutMs;
  while (core.now() < deadline && !signal.aborted) {
    await sleep(pollIntervalMs);
    if (core.storage.revision >= revision) return;
  }
  throw resourceVersionTooLarge(revision, core.storage.revision);
}

export interface Listed {
  readonly items: readonly StoredObject[];
  readonly metadata: ListMeta;
}

interface Start {
  /** The revision to list at; undefined: the newest. */
  readonly revision: number | undefined;
  /** The first full key; undefined: the first of the resource or namespace. */
  readonly from: string | undefined;
}

/** Keys read from the store at a time when a selector drops some of them. */
const selectivePage = 500;

/**
 * Lists a resource, all of it or a page, from one consistent state (apiserver `storage` GetList with its
 * resourceVersion rules, section 9.2 of service-semantics).
 *
 * @param namespace "" lists all namespaces.
 * @throws {StatusError} 400, 410, 500 or 504.
 */
export async function listObjects(
  core: ServerCore,
  resource: ServedResource,
  namespace: string,
  options: ListOptions,
  filter: ListFilter,
  signal: AbortSignal,
): Promise<Listed> {
  const prefix = storagePrefixOf(resource, namespace);
  const root = tokenRoot(resource, namespace);
  const start = await startOf(core, resource, root, options, signal);
  const fromCache = options.resourceVersion === '0' && resource.definition.uncached !== true;
  const unlimited = options.limit <= 0 || fromCache;
  const limit = unlimited ? Infinity : options.limit;
  let page: Page;
  try {
    page = await readPage(core, resource, prefix, start, limit, filter);
  } catch (error) {
    throw error instanceof CompactedError ? tooOld(start.from?.slice(root.length)) : error;
  }
  const last = page.lastKey;
  const metadata: ListMeta = { resourceVersion: String(page.revision) };
  if (page.remaining > 0 && last !== undefined) {
    metadata.continue = encodeContinue({ revision: page.revision, start: `${last.slice(root.length)}\0` });
    if (filter.everything) metadata.remainingItemCount = page.remaining;
  }
  return { items: page.items, metadata };
}

/**
 * The prefix that keys in continue tokens leave out: as in kube-apiserver, those of cluster-scoped objects are
 * names.
 */
function tokenRoot(resource: ServedResource, namespace: string): string {
  return resource.definition.namespaced
    ? storagePrefixOf(resource, namespace)
    : storageKeyOf(resource, '', '');
}

async function startOf(
  core: ServerCore,
  resource: ServedResource,
  root: string,
  options: ListOptions,
  signal: AbortSignal,
): Promise<Start> {
  if (options.continueToken !== '') {
    const { revision, start } = decodeContinue(options.continueToken);
    if (options.resourceVersion !== '' && options.resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue');
    }
    if (revision > 0) await waitForRevision(core, resource, BigInt(revision), signal);
    return { revision: revision < 0 ? undefined : revision, from: root + start };
  }
  const revision = parseResourceVersion(options.resourceVersion, (message) =>
    badRequest(`invalid resource version: ${message}`),
  );
  if (revision === 0n) return { revision: undefined, from: undefined };
  await waitForRevision(core, resource, revision, signal);
  const exact =
    options.resourceVersionMatch === 'Exact' || (options.resourceVersionMatch === '' && options.limit > 0);
  return { revision: exact ? Number(revision) : undefined, from: undefined };
}

interface Page {
  readonly items: StoredObject[];
  /** The last key that was looked at; undefined: there was none. */
  readonly lastKey: string | undefined;
  /** The number of objects that follow, selected or not. */
  readonly remaining: number;
  readonly revision: number;
}

/** @throws {CompactedError} */
async function readPage(
  core: ServerCore,
  resource: ServedResource,
  prefix: string,
  start: Start,
  limit: number,
  filter: ListFilter,
): Promise<Page> {
  const items: StoredObject[] = [];
  const count = filter.everything ? limit : Math.min(selectivePage, limit);
  let { from, revision } = start;
  let lastKey: string | undefined;
  const slice = new TimeSlice();
  for (;;) {
    const result = read(core, prefix, { revision, from }, count);
    revision = result.revision;
    const served =
      resource.conversion === undefined ? result.items : await resource.conversion.read(result.items);
    let looked = 0;
    for (const item of served) {
      if (!filter.everything && slice.isOver) await slice.yield();
      if (filter.everything || isSelected(filter, resource, item)) items.push(item);
      lastKey = item.key;
      looked++;
      if (items.length === limit) break;
    }
    const remaining = result.remaining + result.items.length - looked;
    if (items.length >= limit || remaining === 0) return { items, lastKey, remaining, revision };
    from = `${lastKey ?? ''}\0`;
  }
}

function isSelected(filter: ListFilter, resource: ServedResource, item: StoredObject): boolean {
  if (!filter.mayMatch(item.text())) return false;
  return filter.matches(resource.shared === undefined ? presented(resource, item.object) : item.object);
}

function read(core: ServerCore, prefix: string, { revision, from }: Start, limit: number): ListResult {
  if (revision !== undefined && revision < core.firstRevision) {
    throw new CompactedError(revision, core.firstRevision);
  }
  return core.storage.list(prefix, {
    ...(revision === undefined ? {} : { revision }),
    ...(from === undefined ? {} : { from }),
    limit,
  });
}

/** @param start of the token that the client went on with; with a new one it gets the rest, as it is now. */
function tooOld(start: string | undefined): StatusError {
  if (start === undefined) return expired('The resourceVersion for the provided list is too old.');
  return expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list ' +
      'without the continue parameter, or use the continue token in this response to retrieve the remainder of ' +
      'the results. Continuing with the provided token results in an inconsistent list - objects that were ' +
      'created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    encodeContinue({ revision: -1, start }),
  );
}
