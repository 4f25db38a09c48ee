import type { ListMeta } from '../../objects/meta.ts';
import type { StatusError } from '../../objects/status.ts';
import { badRequest, expired } from '../../objects/status-errors.ts';
import { CompactedError, type ListResult, type StoredObject } from '../storage/storage.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';
import { type ListOptions, parseResourceVersion } from './options/list-options.ts';
import { waitForRevision } from './read.ts';
import type { Selection } from './selection.ts';
import { storageKeyOf, storagePrefixOf, presented, type ServedResource } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import { TimeSlice } from '../time-slice.ts';

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
  selection: Selection,
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
    page = await readPage(core, resource, prefix, start, limit, selection);
  } catch (error) {
    throw error instanceof CompactedError ? tooOld(start.from?.slice(root.length)) : error;
  }
  const last = page.lastKey;
  const metadata: ListMeta = { resourceVersion: String(page.revision) };
  if (page.remaining > 0 && last !== undefined) {
    metadata.continue = encodeContinue({ revision: page.revision, start: `${last.slice(root.length)}\0` });
    if (selection.everything) metadata.remainingItemCount = page.remaining;
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
  selection: Selection,
): Promise<Page> {
  const items: StoredObject[] = [];
  const count = selection.everything ? limit : Math.min(selectivePage, limit);
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
      if (!selection.everything && slice.isOver) await slice.giveWay();
      if (selection.everything || isSelected(selection, resource, item)) items.push(item);
      lastKey = item.key;
      looked++;
      if (items.length === limit) break;
    }
    const remaining = result.remaining + result.items.length - looked;
    if (items.length >= limit || remaining === 0) return { items, lastKey, remaining, revision };
    from = `${lastKey ?? ''}\0`;
  }
}

function isSelected(selection: Selection, resource: ServedResource, item: StoredObject): boolean {
  if (!selection.mayMatch(item.text())) return false;
  return selection.matches(resource.shared === undefined ? presented(resource, item.object) : item.object);
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
