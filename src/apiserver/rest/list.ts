import type { ListMeta } from '../../objects/meta.ts';
import { badRequest, expired } from '../../objects/status-errors.ts';
import { CompactedError, type ListResult, type StoredObject } from '../storage/storage.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';
import { type ListOptions, parseResourceVersion } from './list-options.ts';
import { waitForRevision } from './read.ts';
import type { Selection } from './selection.ts';
import { prefixOf, presented, type ServedResource } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';

export interface Listed {
  readonly items: readonly StoredObject[];
  readonly metadata: ListMeta;
}

interface Start {
  /** The revision to list at; undefined: the newest. */
  readonly revision: number | undefined;
  /** The full key behind which to start. */
  readonly after: string | undefined;
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
  const prefix = prefixOf(resource, namespace);
  const start = await startOf(core, resource, prefix, options, signal);
  const fromCache = options.resourceVersion === '0' && resource.definition.uncached !== true;
  const unlimited = options.limit <= 0 || fromCache;
  const limit = unlimited ? Infinity : options.limit;
  const page = await readPage(core, resource, prefix, start, limit, selection, options.continueToken !== '');
  const last = page.lastKey;
  const metadata: ListMeta = { resourceVersion: String(page.revision) };
  if (page.remaining > 0 && last !== undefined) {
    metadata.continue = encodeContinue({ revision: page.revision, start: `${last.slice(prefix.length)}\0` });
    if (selection.everything) metadata.remainingItemCount = page.remaining;
  }
  return { items: page.items, metadata };
}

async function startOf(
  core: ServerCore,
  resource: ServedResource,
  prefix: string,
  options: ListOptions,
  signal: AbortSignal,
): Promise<Start> {
  if (options.continueToken !== '') {
    const { revision, start } = decodeContinue(options.continueToken);
    if (options.resourceVersion !== '' && options.resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue');
    }
    if (revision > 0) await waitForRevision(core, resource, revision, signal);
    const after = prefix + start.replace(/\0$/, '');
    return { revision: revision < 0 ? undefined : revision, after };
  }
  const revision = parseResourceVersion(options.resourceVersion, (message) =>
    badRequest(`invalid resource version: ${message}`),
  );
  if (revision === 0) return { revision: undefined, after: undefined };
  await waitForRevision(core, resource, revision, signal);
  const exact =
    options.resourceVersionMatch === 'Exact' || (options.resourceVersionMatch === '' && options.limit > 0);
  return { revision: exact ? revision : undefined, after: undefined };
}

interface Page {
  readonly items: StoredObject[];
  readonly lastKey: string | undefined;
  readonly remaining: number;
  readonly revision: number;
}

async function readPage(
  core: ServerCore,
  resource: ServedResource,
  prefix: string,
  start: Start,
  limit: number,
  selection: Selection,
  continued: boolean,
): Promise<Page> {
  const items: StoredObject[] = [];
  let { after, revision } = start;
  for (;;) {
    const count = selection.everything
      ? limit
      : Math.min(selectivePage, Number.isFinite(limit) ? limit : Infinity);
    const result = read(
      core,
      prefix,
      { revision, after },
      Number.isFinite(count) ? count : undefined,
      continued,
    );
    revision = result.revision;
    const served =
      resource.conversion === undefined ? result.items : await resource.conversion.read(result.items);
    for (const item of served) {
      if (selection.everything || isSelected(selection, resource, item)) items.push(item);
      after = item.key;
      if (items.length === limit) break;
    }
    const lastOfChunk = result.items.at(-1)?.key;
    if (items.length >= limit || result.remaining === 0 || lastOfChunk === undefined) {
      const behind =
        lastOfChunk === after
          ? 0
          : result.items.length - 1 - result.items.findIndex((item) => item.key === after);
      return { items, lastKey: after, remaining: result.remaining + Math.max(0, behind), revision };
    }
  }
}

function isSelected(selection: Selection, resource: ServedResource, item: StoredObject): boolean {
  if (!selection.mayMatch(item.text())) return false;
  return selection.matches(resource.shared === undefined ? presented(resource, item.object) : item.object);
}

function read(
  core: ServerCore,
  prefix: string,
  start: Start,
  limit: number | undefined,
  continued: boolean,
): ListResult {
  try {
    if (start.revision !== undefined && start.revision < core.firstRevision) {
      throw new CompactedError(start.revision, core.firstRevision);
    }
    return core.storage.list(prefix, {
      ...(start.revision === undefined ? {} : { revision: start.revision }),
      ...(start.after === undefined ? {} : { after: start.after }),
      ...(limit === undefined ? {} : { limit }),
    });
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    if (!continued || start.after === undefined) {
      throw expired('The resourceVersion for the provided list is too old.');
    }
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list ' +
        'without the continue parameter, or use the continue token in this response to retrieve the remainder of ' +
        'the results. Continuing with the provided token results in an inconsistent list - objects that were ' +
        'created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
      encodeContinue({ revision: -1, start: `${start.after.slice(prefix.length)}\0` }),
    );
  }
}
