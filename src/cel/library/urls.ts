import { type Library, member, overload1, stringParam } from '../overload.ts';
import * as types from '../types.ts';
import { EvaluationError, type OpaqueValue, PlainList, PlainMap, type Value } from '../values.ts';
import { instance, opaque } from './opaque.ts';
import { walk } from '../walk.ts';

const urlType = opaque('kubernetes.URL');

/** The parts of a URL, not decoded. */
class UrlValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = urlType;
  readonly text: string;
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;

  constructor(value: string, scheme: string, host: string, path: string, query: string) {
    this.text = value;
    this.scheme = scheme;
    this.host = host;
    this.path = path;
    this.query = query;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof UrlValue && other.text === this.text;
  }
}

/** An absolute URL or an absolute path (Go's `url.ParseRequestURI`), or the error. */
export function parseUrl(value: string): UrlValue | string {
  if (value === '') return 'empty url';
  if (/[\x00-\x1f\x7f]/.test(value)) return 'net/url: invalid control character in URL';
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(value)?.[1]?.toLowerCase() ?? '';
  const rest = scheme === '' ? value : value.slice(scheme.length + 1);
  if (scheme === '' && value.startsWith(':')) return 'missing protocol scheme';
  const question = rest.indexOf('?');
  const query = question === -1 ? '' : rest.slice(question + 1);
  const body = question === -1 ? rest : rest.slice(0, question);
  if (!body.startsWith('/')) {
    return scheme === '' ? 'invalid URI for request' : new UrlValue(value, scheme, '', '', query);
  }
  const hasAuthority = body.startsWith('//') && (scheme !== '' || !body.startsWith('///'));
  if (!hasAuthority) return wrongEscape(body) ?? new UrlValue(value, scheme, '', escapePath(body), query);
  const slash = body.indexOf('/', 2);
  const authority = slash === -1 ? body.slice(2) : body.slice(2, slash);
  const path = slash === -1 ? '' : body.slice(slash);
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return wrongHost(host) ?? wrongEscape(path) ?? new UrlValue(value, scheme, host, escapePath(path), query);
}

function wrongHost(host: string): string | undefined {
  if (host.startsWith('[') && !host.includes(']')) return `missing ']' in host`;
  const port = host.startsWith('[') ? host.slice(host.lastIndexOf(']') + 1) : (/:.*$/s.exec(host)?.[0] ?? '');
  if (port !== '' && !/^:\d*$/.test(port)) return `invalid port ${JSON.stringify(port)} after host`;
  const odd = /[ "<>\\^`{|}]/.exec(host)?.[0];
  return odd === undefined ? undefined : `invalid character ${JSON.stringify(odd)} in host name`;
}

function wrongEscape(path: string): string | undefined {
  const odd = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(path)?.[0];
  return odd === undefined ? undefined : `invalid URL escape ${JSON.stringify(odd)}`;
}

function escapePath(path: string): string {
  return path.replace(/[^A-Za-z0-9\-_.~$&+,/:;=@!'()*%]/gu, (character) => encodeURIComponent(character));
}

function queryMap(query: string): PlainMap {
  const values = new Map<string, Value[]>();
  for (const [key, value] of new URLSearchParams(query)) {
    const list = values.get(key) ?? [];
    list.push(value);
    values.set(key, list);
  }
  return new PlainMap([...values].map(([key, list]): [Value, Value] => [key, new PlainList(list)]));
}

const url = instance(urlType, UrlValue);

function getter(name: string, read: (value: UrlValue) => string): Library[number] {
  return [name, [member(overload1(url, types.stringType, read))]];
}

/** `url(…)` and its functions (`apiserver/pkg/cel/library/urls.go`). */
export const urlFunctions: Library = [
  [
    'url',
    [
      overload1(stringParam, urlType, (value, meter) => {
        walk(meter, value);
        const parsed = parseUrl(value);
        if (typeof parsed !== 'string') return parsed;
        const detail = `parse ${JSON.stringify(value)}: ${parsed}`;
        throw new EvaluationError(`URL parse error during conversion from string: ${detail}`);
      }),
    ],
  ],
  [
    'isURL',
    [
      overload1(stringParam, types.boolType, (value, meter) => {
        walk(meter, value);
        return typeof parseUrl(value) !== 'string';
      }),
    ],
  ],
  getter('getScheme', ({ scheme }) => scheme),
  getter('getHost', ({ host }) => host),
  getter('getHostname', ({ host }) => host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')),
  getter('getPort', ({ host }) => /:(\d*)$/.exec(host)?.[1] ?? ''),
  getter('getEscapedPath', ({ path }) => path),
  [
    'getQuery',
    [
      member(
        overload1(url, types.mapType(types.stringType, types.listType(types.stringType)), ({ query }) =>
          queryMap(query),
        ),
      ),
    ],
  ],
];
