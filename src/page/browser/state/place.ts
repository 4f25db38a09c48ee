import type { ViewName } from '../../messages.ts';

/** What is seen, as the URL says it: `/service/shop/web`, `/map?ns=shop&show=problems`. Never the key of a session. */
export interface Place {
  readonly view: ViewName;
  /** Of the view of one Service. */
  readonly service?: { readonly namespace: string; readonly name: string };
  /** Further words, such as `ns`, `q`, `from`. None is empty. */
  readonly query: Readonly<Record<string, string>>;
}

/** Views of a whole cluster, in the order of their tabs. */
export const tabs = [
  'map',
  'reach',
  'way',
  'flows',
  'addresses',
  'http',
  'events',
] as const satisfies readonly ViewName[];

/** Any path that is none of ours is the Map. @param search with or without its `?`. */
export function parsePlace(pathname: string, search: string): Place {
  const query = Object.fromEntries([...new URLSearchParams(search)].filter(([, value]) => value !== ''));
  const [view, namespace, name] = pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decoded);
  if (view === 'service' && namespace !== undefined && name !== undefined) {
    return { view, service: { namespace, name }, query };
  }
  return { view: tabs.find((tab) => tab === view) ?? 'map', query };
}

/** The path and query of a URL. */
export function formatPlace({ view, service, query }: Place): string {
  const parts = service === undefined ? [view] : [view, service.namespace, service.name];
  const given = Object.entries(query).filter(([, value]) => value !== '');
  // Signs of `deploy/shop/cart` and `svc/shop/catalog:80` stay readable in a query.
  const words = given.map(
    ([key, value]) => `${key}=${encodeURIComponent(value).replaceAll('%2F', '/').replaceAll('%3A', ':')}`,
  );
  return `/${parts.map(encodeURIComponent).join('/')}${words.length === 0 ? '' : `?${words.join('&')}`}`;
}

/** Another view; the namespace and the time stay. */
export function placeOf(view: ViewName, from: Place, query: Place['query'] = {}): Place {
  const { ns, at } = from.query;
  return {
    view,
    query: { ...(ns === undefined ? {} : { ns }), ...query, ...(at === undefined ? {} : { at }) },
  };
}

/** When what a place shows was so: milliseconds since 1970. Undefined: now, as flows always are. */
export function timeOf({ view, query: { at } }: Place): number | undefined {
  const ms = at === undefined || view === 'flows' ? NaN : Date.parse(at);
  return Number.isNaN(ms) || ms >= Date.now() ? undefined : ms;
}

/** `2026-11-27T20:41:05Z`, as `at` in a URL. */
export function secondText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The view of a Service. @param key `shop/web`. */
export function servicePlace(key: string, from: Place): Place {
  const [namespace = '', name = ''] = key.split('/');
  return { ...placeOf('service', from), service: { namespace, name } };
}

/** The same view with other words; undefined takes one away. */
export function withQuery(place: Place, changes: Readonly<Record<string, string | undefined>>): Place {
  const merged = Object.entries({ ...place.query, ...changes });
  const query = merged.flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [[key, value] as const],
  );
  return { ...place, query: Object.fromEntries(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
