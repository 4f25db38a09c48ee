/** Merges OpenAPI v2 documents of extension API servers into that of this server (kube-openapi `pkg/aggregator`). PURE. */
import { isRecord, jsonEqual, type JsonRecord } from '../../../objects/json.ts';

/** The part of an extension API server's document for one group version. */
export interface RemoteDocumentV2 {
  readonly paths: JsonRecord;
  readonly definitions: JsonRecord;
}

const refPrefix = '#/definitions/';

/**
 * The paths below a prefix, and the definitions without those that only other paths use
 * (`FilterSpecByPathsWithoutSideEffects`).
 *
 * @returns undefined where the document is not OpenAPI v2.
 */
export function partOfV2(document: unknown, prefix: string): RemoteDocumentV2 | undefined {
  if (!isRecord(document) || document['swagger'] !== '2.0') return undefined;
  const all = recordsOf(document['paths']);
  const definitions = recordsOf(document['definitions']);
  const paths = Object.fromEntries(Object.entries(all).filter(([path]) => path.startsWith(prefix)));
  const [before, after] = [usedBy(all, definitions), usedBy(paths, definitions)];
  return {
    paths,
    definitions: Object.fromEntries(
      Object.entries(definitions).filter(([name]) => after.has(name) || !before.has(name)),
    ),
  };
}

/**
 * Adds documents of extension API servers. Existing paths stay; a definition that differs from the existing one of its
 * name is renamed (`MergeSpecsIgnorePathConflictRenamingDefinitionsAndGVKs`). Yields between definitions and paths.
 */
export function* withRemoteV2(
  document: JsonRecord,
  remotes: readonly RemoteDocumentV2[],
): Generator<undefined, JsonRecord, undefined> {
  if (remotes.length === 0) return document;
  const paths: JsonRecord = { ...(isRecord(document['paths']) ? document['paths'] : {}) };
  const definitions: JsonRecord = { ...(isRecord(document['definitions']) ? document['definitions'] : {}) };
  for (const remote of remotes) {
    const names = new Map<string, string>();
    for (const [name, definition] of Object.entries(remote.definitions)) {
      names.set(name, freeName(definitions, name, definition));
      yield;
    }
    for (const [name, definition] of Object.entries(remote.definitions)) {
      definitions[names.get(name) ?? name] ??= renamed(definition, names);
      yield;
    }
    for (const [path, item] of Object.entries(remote.paths)) {
      paths[path] ??= renamed(item, names);
      yield;
    }
  }
  return { ...document, paths, definitions };
}

function recordsOf(value: unknown): JsonRecord {
  return Object.fromEntries(
    Object.entries(isRecord(value) ? value : {}).filter(([, each]) => isRecord(each)),
  );
}

/** The name, with a suffix if it has another definition already. */
function freeName(definitions: JsonRecord, name: string, definition: unknown): string {
  let free = name;
  for (
    let number = 2;
    Object.hasOwn(definitions, free) && !jsonEqual(definitions[free], definition);
    number++
  ) {
    free = `${name}_v${number}`;
  }
  return free;
}

function usedBy(paths: JsonRecord, definitions: JsonRecord): ReadonlySet<string> {
  const used = new Set<string>();
  const pending: unknown[] = [paths];
  while (pending.length > 0) {
    const value = pending.pop();
    if (Array.isArray(value)) for (const each of value) pending.push(each);
    if (!isRecord(value)) continue;
    for (const [member, each] of Object.entries(value)) {
      const name = member === '$ref' ? definitionOf(each) : undefined;
      if (name === undefined) pending.push(each);
      else if (!used.has(name)) {
        used.add(name);
        pending.push(definitions[name]);
      }
    }
  }
  return used;
}

function definitionOf(ref: unknown): string | undefined {
  return typeof ref === 'string' && ref.startsWith(refPrefix) ? ref.slice(refPrefix.length) : undefined;
}

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, names));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([member, each]) => {
      const name = member === '$ref' ? definitionOf(each) : undefined;
      return [member, name === undefined ? renamed(each, names) : `${refPrefix}${names.get(name) ?? name}`];
    }),
  );
}
