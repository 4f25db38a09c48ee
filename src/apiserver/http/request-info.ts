import type { RequestInfo } from './exchange.ts';

const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize']);

const verbs: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

const nothing: readonly string[] = [];

/**
 * The verb, resource and name of a request: the rules of kube-apiserver's RequestInfoFactory (apiserver
 * `pkg/endpoints/request/requestinfo.go`). Slashes at both ends of the path do not count.
 *
 * @param path the decoded path, without the query.
 */
export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  const parts = segments(path);
  const prefixLength = parts[0] === 'api' ? 2 : parts[0] === 'apis' ? 3 : Infinity;
  if (parts.length <= prefixLength) return nonResource(method, path);

  const group = prefixLength === 3 ? (parts[1] ?? '') : '';
  const version = parts[prefixLength - 1] ?? '';
  let index = prefixLength;
  let verb = verbs.get(method) ?? '';
  if (parts[index] === 'watch' || parts[index] === 'proxy') {
    verb = parts[index] ?? '';
    index++;
    if (index >= parts.length) return nonResource(method, path);
  }

  let namespace = '';
  if (parts[index] === 'namespaces' && parts.length > index + 1) {
    namespace = parts[index + 1] ?? '';
    // namespaces/x/services is a resource of its own; namespaces/x/status belongs to the namespace
    const third = parts[index + 2];
    if (third !== undefined && !namespaceSubresources.has(third)) index += 2;
  }

  const resource = parts[index] ?? '';
  let name = parts[index + 1] ?? '';
  const subresource = verb === 'proxy' ? '' : (parts[index + 2] ?? '');
  if (name === '' && verb === 'get') {
    verb = isTrue(query.get('watch')) ? 'watch' : 'list';
    name = nameOfFieldSelector(query.get('fieldSelector'));
  } else if (name === '' && verb === 'delete') {
    verb = 'deletecollection';
  }
  const rest = parts.length > index + 3 ? parts.slice(index + 3) : nothing;
  return { isResource: true, verb, path, group, version, namespace, resource, subresource, name, rest };
}

function nonResource(method: string, path: string): RequestInfo {
  return {
    isResource: false,
    verb: method.toLowerCase(),
    path,
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    rest: nothing,
  };
}

function segments(path: string): readonly string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path.charCodeAt(start) === 0x2f) start++;
  while (end > start && path.charCodeAt(end - 1) === 0x2f) end--;
  return start === end ? nothing : path.slice(start, end).split('/');
}

/**
 * A boolean query parameter: `0` and `false` in any case are false, everything else is true (apimachinery
 * `runtime/conversion.go`, Convert_Slice_string_To_bool).
 */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/**
 * The name that a list or watch is bound to by `metadata.name=<name>` in its field selector, so that an
 * authorizer can grant it by resource name; "" where there is none.
 */
function nameOfFieldSelector(selector: string | null): string {
  if (selector === null || !selector.includes('metadata.name')) return '';
  for (const term of selector.split(',')) {
    const match = /^metadata\.name==?([^=!\\]+)$/.exec(term);
    const name = match?.[1];
    // a name that cannot be one path segment names nothing (api/validation/path)
    if (name !== undefined && name !== '.' && name !== '..' && !/[/%]/.test(name)) return name;
  }
  return '';
}

/** A path without the slashes at its end; "/" stays. One pass, for any number of them. */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 1 && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(0, end);
}
