import type {
  HTTPPathModifier,
  HTTPBackendRef,
  HTTPRouteFilter,
  HTTPRouteMatch,
  HTTPRouteRule,
} from '../../../objects/types/gateway.ts';
import { expressionProblem } from '../expressions.ts';
import { pushAll } from '../../../objects/lists.ts';
import { joinKey } from '../../../objects/meta.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import type {
  HTTPIngressPath,
  Ingress,
  IngressBackend,
} from '../../../objects/types/networking.generated.ts';
import type { Canary, IngressSettings, Note } from './annotations.ts';

/** Paths of Ingresses, and what ingress-nginx makes of them, as matches and rewrites of HTTPRoutes. Pure. */

/** A path of an Ingress. */
interface IngressPath {
  readonly path: string;
  readonly pathType: string;
  /** By `use-regex` or `rewrite-target` paths are expressions. */
  readonly isExpression: boolean;
  readonly rewriteTarget: string | undefined;
}

interface PathMatch {
  readonly type: 'Exact' | 'PathPrefix' | 'RegularExpression';
  readonly value: string;
}

interface ImportedPath {
  readonly match: PathMatch;
  readonly rewrite: HTTPPathModifier | undefined;
  /** Why `rewrite-target` was left out. */
  readonly problem: string | undefined;
}

/** What makes a path of ingress-nginx an expression. A dot is none: few paths with one are meant as such. */
const special = /[$()*+?[\]{}|\\^]/;

/** What Gateway API takes in exact paths and prefixes. */
const plain = /^\/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$/;

const maxLength = 1024;

/** Why Gateway API does not take a path that is no expression. */
function plainProblem(path: string): string | undefined {
  if (path.length > maxLength) return `a path has at most ${maxLength} characters`;
  const isPlain = plain.test(path) && !/\/\/|\/\.{1,2}(?:\/|$)|%2f/i.test(path);
  return isPlain ? undefined : 'Gateway API takes no such path';
}

/** Ends of paths with groups that stand for the rest behind a prefix, and how `rewrite-target` ends then. */
const rests = [
  { end: '(/|$)(.*)', target: '/$2' },
  { end: '/?(.*)', target: '/$1' },
  { end: '/(.*)', target: '/$1' },
  { end: '(/.*)?', target: '$1' },
  { end: '(/.*)', target: '$1' },
] as const;

/** The match of a path, and its rewrite; text: why there is none. */
export function importPath({
  path,
  pathType,
  isExpression,
  rewriteTarget,
}: IngressPath): ImportedPath | string {
  if (isExpression && special.test(path)) return expressionOf(path, rewriteTarget);
  const value = path === '' ? '/' : path;
  const problem = plainProblem(value);
  if (problem !== undefined) return problem;
  const match = { type: pathType === 'Exact' ? 'Exact' : 'PathPrefix', value } as const;
  return { match, ...fullRewrite(rewriteTarget) };
}

function expressionOf(path: string, rewriteTarget: string | undefined): ImportedPath | string {
  const whole = withoutAnchors(path);
  for (const { end, target } of rests) {
    if (!whole.text.endsWith(end)) continue;
    const prefix = whole.text.slice(0, -end.length) || '/';
    if (special.test(prefix) || plainProblem(prefix) !== undefined) continue;
    const match = { type: 'PathPrefix', value: prefix } as const;
    const before =
      rewriteTarget?.endsWith(target) === true ? rewriteTarget.slice(0, -target.length) : undefined;
    if (before !== undefined && isTarget(before === '' ? '/' : before)) {
      const replacePrefixMatch = before === '' ? '/' : before;
      return { match, rewrite: { type: 'ReplacePrefixMatch', replacePrefixMatch }, problem: undefined };
    }
    return { match, ...fullRewrite(rewriteTarget) };
  }
  const body = whole.text.includes('|') ? `(?:${whole.text})` : whole.text;
  const isOpen = !whole.isEnd && !/\.\*\)?$/.test(body);
  const value = `(?i)${body}${isOpen ? '.*' : ''}`;
  const problem = value.length > maxLength ? `it is longer than ${maxLength}` : expressionProblem(value);
  return problem ?? { match: { type: 'RegularExpression', value }, ...fullRewrite(rewriteTarget) };
}

/** ingress-nginx puts `^` before each expression; a match of Gateway API is one of the whole path. */
function withoutAnchors(path: string): { readonly text: string; readonly isEnd: boolean } {
  const from = path.startsWith('^') ? 1 : 0;
  const isEnd = path.endsWith('$') && !path.endsWith('\\$');
  return { text: path.slice(from, isEnd ? -1 : undefined), isEnd };
}

/** Without a group, `rewrite-target` is the whole path for the backend. */
function fullRewrite(target: string | undefined): Pick<ImportedPath, 'rewrite' | 'problem'> {
  if (target === undefined) return { rewrite: undefined, problem: undefined };
  if (isTarget(target)) {
    return { rewrite: { type: 'ReplaceFullPath', replaceFullPath: target }, problem: undefined };
  }
  return { rewrite: undefined, problem: 'a Route replaces a prefix or the whole path, by a path alone' };
}

function isTarget(target: string): boolean {
  return target.length <= maxLength && /^\/[^\s$?#]*$/.test(target);
}

/** Rules of HTTPRoutes for the paths of Ingresses. Pure. */

/** An Ingress with what its annotations ask. */
export interface ReadIngress {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: Ingress;
  readonly settings: IngressSettings;
  /** Begins with the Ingress's key. */
  readonly note: Note;
  /** By host, lower case; "" for all. */
  readonly hosts: ReadonlyMap<string, readonly HTTPIngressPath[]>;
}

/** An Ingress that sends some requests of another one elsewhere. */
interface CanaryPath {
  readonly owner: ReadIngress;
  readonly canary: Canary;
  readonly backend: IngressBackend;
}

const all: PathMatch = { type: 'PathPrefix', value: '/' };

/** The rules of the Ingresses of one class. */
export class ImportedRules {
  readonly #services: ReadonlyMap<string, Service>;
  /** Whether paths of type ImplementationSpecific are prefixes by elements, as our router has them. */
  readonly #isByElements: boolean;
  /** Canaries by namespace, host and path, until one is used. */
  readonly #canaries = new Map<string, CanaryPath>();
  /** Who has a rule for a host and a match. */
  readonly #claims = new Map<string, string>();

  constructor(services: ReadonlyMap<string, Service>, isByElements: boolean) {
    this.#services = services;
    this.#isByElements = isByElements;
  }

  /** Goes before the rules of all other Ingresses. */
  addCanary(owner: ReadIngress, canary: Canary): void {
    for (const [host, paths] of owner.hosts) {
      for (const path of paths) {
        const key = canaryKey(owner, host, path);
        if (!this.#canaries.has(key)) this.#canaries.set(key, { owner, canary, backend: path.backend });
        else owner.note(`canary for ${host}${path.path ?? ''} not imported: an older Ingress is one, too`);
      }
    }
    if (owner.object.spec.defaultBackend !== undefined) {
      owner.note('defaultBackend not imported: that of a canary has no effect');
    }
  }

  /** Notes canaries of paths that no other Ingress has. Behind the rules of all. */
  noteUnused(): void {
    for (const { owner, backend } of this.#canaries.values()) {
      const name = backend.service?.name ?? '';
      owner.note(`canary ${name} not imported: no other Ingress of the namespace has its host and path`);
    }
  }

  /** The rules of an Ingress for a host. The older Ingresses go before it. */
  rules(one: ReadIngress, host: string): HTTPRouteRule[] {
    const paths = one.hosts.get(host) ?? [];
    const rules = paths.length === 0 ? [] : this.#appRoot(one, host);
    for (const path of paths) pushAll(rules, this.#ofPath(one, host, path));
    return rules;
  }

  #appRoot(one: ReadIngress, host: string): HTTPRouteRule[] {
    const { appRoot, redirect } = one.settings;
    if (appRoot === undefined || redirect !== undefined) return [];
    const match: PathMatch = { type: 'Exact', value: '/' };
    if (!this.#claim(one, host, match)) {
      one.note(`app-root not imported for ${shownHost(host)}: ${this.#owner(host, match)} has the path /`);
      return [];
    }
    const path = { type: 'ReplaceFullPath', replaceFullPath: appRoot };
    const filter = { type: 'RequestRedirect', requestRedirect: { path, statusCode: 302 } };
    return [{ matches: [{ path: match }], filters: [filter] }];
  }

  #ofPath(one: ReadIngress, host: string, path: HTTPIngressPath): HTTPRouteRule[] {
    const { settings, note } = one;
    const pathType = path.pathType ?? 'ImplementationSpecific';
    const { isExpression, rewriteTarget } = settings;
    const imported = importPath({ path: path.path ?? '', pathType, isExpression, rewriteTarget });
    const shown = `${host}${path.path ?? ''}`;
    if (typeof imported === 'string') {
      note(`${shown} not imported: ${imported}`);
      return [];
    }
    if (path.backend.service === undefined && settings.redirect === undefined) {
      note(`${shown} not imported: its backend is no Service`);
      return [];
    }
    const { match, rewrite, problem } = imported;
    if (!this.#claim(one, host, match)) {
      note(`${shown} not imported: ${this.#owner(host, match)} has it, too, and is older`);
      return [];
    }
    if (problem !== undefined) note(`rewrite-target not imported for ${shown}: ${problem}`);
    const isPrefix = pathType === 'ImplementationSpecific' && match.type === 'PathPrefix';
    if (isPrefix && !this.#isByElements && path.path === match.value && !match.value.endsWith('/')) {
      note(`${shown} was a prefix by characters, and is one by elements of the path now`);
    }
    const key = canaryKey(one, host, path);
    const canary = this.#canaries.get(key);
    this.#canaries.delete(key);
    return this.#ruleOf(one, { path: match }, filtersOf(settings, rewrite), path.backend, canary);
  }

  /** The rule of a default backend for a host, unless an Ingress has all of it. Behind the rules of all Ingresses. */
  defaultRules(one: ReadIngress, host: string): HTTPRouteRule[] {
    const { defaultBackend } = one.object.spec;
    if (defaultBackend === undefined) return [];
    if (defaultBackend.service === undefined) {
      one.note('defaultBackend not imported: it is no Service');
      return [];
    }
    if (!this.#claim(one, host, all)) {
      const owner = this.#owner(host, all);
      if (owner !== one.key) one.note(`defaultBackend not imported for ${shownHost(host)}: ${owner} has it`);
      return [];
    }
    return this.#ruleOf(one, { path: all }, filtersOf(one.settings, undefined), defaultBackend, undefined);
  }

  /** Whether nobody had it. */
  #claim({ key }: ReadIngress, host: string, match: PathMatch): boolean {
    const claim = claimOf(host, match);
    if (this.#claims.has(claim)) return false;
    this.#claims.set(claim, key);
    return true;
  }

  #owner(host: string, match: PathMatch): string {
    return this.#claims.get(claimOf(host, match)) ?? '';
  }

  /** With a canary by a header there are rules for its values, which go before the one without headers. */
  #ruleOf(
    one: ReadIngress,
    match: HTTPRouteMatch,
    filters: readonly HTTPRouteFilter[],
    backend: IngressBackend,
    found: CanaryPath | undefined,
  ): HTTPRouteRule[] {
    const { redirect, timeouts, isClosed } = one.settings;
    if (redirect !== undefined) return [{ matches: [match], filters: [redirect] }];
    const rule = (matches: HTTPRouteMatch, refs: readonly HTTPBackendRef[]): HTTPRouteRule => ({
      matches: [matches],
      ...(filters.length === 0 ? {} : { filters: [...filters] }),
      ...(refs.length === 0
        ? {}
        : { backendRefs: refs.map((ref) => (isClosed ? { ...ref, weight: 0 } : ref)) }),
      ...(timeouts === undefined ? {} : { timeouts }),
    });
    const main = this.#backendRefs(one, backend);
    if (found === undefined) return [rule(match, main)];
    const { header, value, weight, weightTotal } = found.canary;
    const canary = this.#backendRefs({ ...found.owner, settings: one.settings }, found.backend);
    const withHeader = (text: string): HTTPRouteMatch => ({
      ...match,
      headers: [
        {
          ...(value?.isExpression === true ? { type: 'RegularExpression' } : {}),
          name: header ?? '',
          value: text,
        },
      ],
    });
    const rules: HTTPRouteRule[] = [];
    if (header !== undefined && value === undefined) {
      rules.push(rule(withHeader('always'), canary), rule(withHeader('never'), main));
    } else if (header !== undefined && value !== undefined) {
      rules.push(rule(withHeader(value.text), canary));
    }
    const shares = [
      ...main.map((ref) => ({ ...ref, weight: weightTotal - weight })),
      ...canary.map((ref) => ({ ...ref, weight })),
    ];
    return [...rules, rule(match, weight === 0 ? main : shares)];
  }

  /** None for a port that cannot be found: the path keeps its rule, which answers with 500. */
  #backendRefs({ namespace, note, settings }: ReadIngress, { service }: IngressBackend): HTTPBackendRef[] {
    if (service === undefined) return [];
    const { name, port: { name: portName = '', number } = {} } = service;
    const found = this.#services.get(joinKey(namespace, name));
    const ports = found?.spec.ports ?? [];
    const port = portName === '' ? number : ports.find((one) => one.name === portName)?.port;
    const shownPort = portName === '' ? String(number) : portName;
    if (found === undefined) note(`the Service ${name} is not there`);
    else if (found.spec.type === 'ExternalName') {
      note(`the Service ${name} is of type ExternalName, which Routes do not follow`);
    } else if (!ports.some((one) => one.port === port)) note(`the Service ${name} has no port ${shownPort}`);
    if (port === undefined) {
      note(`requests for the Service ${name} get 500: the number of its port ${shownPort} is not known`);
      return [];
    }
    noteProtocol(settings.protocol, name, port, note);
    return [{ name, port }];
  }
}

function canaryKey(
  { namespace }: ReadIngress,
  host: string,
  { path = '', pathType }: HTTPIngressPath,
): string {
  return JSON.stringify([namespace, host, path, pathType]);
}

/** A slash at the end of a prefix counts for nothing. */
function claimOf(host: string, { type, value }: PathMatch): string {
  const path = type === 'PathPrefix' && value.endsWith('/') ? value.slice(0, -1) : value;
  return JSON.stringify([host, type, path]);
}

function shownHost(host: string): string {
  return host === '' ? 'all hosts' : host;
}

function filtersOf(
  { requestHeaders, rewriteHost, cors }: IngressSettings,
  path: HTTPPathModifier | undefined,
): HTTPRouteFilter[] {
  const urlRewrite = {
    ...(rewriteHost === undefined ? {} : { hostname: rewriteHost }),
    ...(path === undefined ? {} : { path }),
  };
  return [
    ...(requestHeaders === undefined ? [] : [requestHeaders]),
    ...(Object.keys(urlRewrite).length === 0 ? [] : [{ type: 'URLRewrite', urlRewrite }]),
    ...(cors === undefined ? [] : [cors]),
  ];
}

/** What is to be written where backends do not speak HTTP/1.1. */
function noteProtocol(protocol: string, service: string, port: number, note: Note): void {
  const isGrpc = protocol === 'GRPC' || protocol === 'GRPCS';
  if (isGrpc) {
    note(
      `backend-protocol ${protocol}: set appProtocol: kubernetes.io/h2c at port ${port} of the Service ${service}, or write a GRPCRoute in the place of the HTTPRoute`,
    );
  }
  if (protocol === 'HTTPS' || protocol === 'GRPCS') {
    note(
      `backend-protocol ${protocol}: write a BackendTLSPolicy with targetRefs to the Service ${service}, the hostname in its certificate, and a ConfigMap with ca.crt of who signed it: a Gateway verifies backends, ingress-nginx did not`,
    );
  } else if (!isGrpc && protocol !== 'HTTP' && protocol !== 'AUTO_HTTP') {
    note(`backend-protocol ${protocol} not imported: Routes speak HTTP with the Service ${service}`);
  }
}
