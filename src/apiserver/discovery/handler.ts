import { createHash } from 'node:crypto';
import { methodNotAllowed, resourceNotFound } from '../../objects/status.ts';
import { encode } from '../http/reply.ts';
import { type ApiRequest, type Handler, type Reply, replyNotFound } from '../http/exchange.ts';
import { type MediaType, negotiateDiscovery } from '../http/negotiation.ts';
import type { DiscoveredResource, DiscoveredResources } from './discovered-resource.ts';
import {
  type DiscoveredGroup,
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  groupResources,
  type RemoteGroupVersion,
} from './documents.ts';

/** The documents of one set of served resources. */
interface Snapshot {
  readonly resources: readonly DiscoveredResource[];
  readonly remote: readonly RemoteGroupVersion[];
  readonly groups: ReadonlyMap<string, DiscoveredGroup>;
  /** By name and media type. */
  readonly documents: Map<string, WrittenDocument>;
}

interface WrittenDocument {
  readonly body: Buffer;
  readonly etag: string;
}

/**
 * Serves `/api`, `/api/v1`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`, aggregated discovery included, and
 * answers unknown paths below `/api` and `/apis`.
 *
 * @param remoteVersions what extension API servers serve; the same list while nothing changes.
 * @param address host and port as clients reach them.
 */
export function discoveryHandler(
  served: DiscoveredResources,
  remoteVersions: () => readonly RemoteGroupVersion[],
  address: () => string,
): Handler {
  let snapshot: Snapshot | undefined;
  return async (request, reply) => {
    const resources = served();
    const remote = remoteVersions();
    if (snapshot?.resources !== resources || snapshot.remote !== remote) {
      snapshot = { resources, remote, groups: groupResources(resources, remote), documents: new Map() };
    }
    const document = documentAt(request, snapshot, address);
    if (document === undefined) {
      replyUnserved(request, reply, snapshot);
    } else if (request.method === 'GET' || document.skipsGoRestful === true) {
      await Promise.resolve();
      send(request, reply, snapshot, document);
    } else {
      throw methodNotAllowed(['GET']);
    }
  };
}

interface Document {
  /** Unique among the documents. */
  readonly name: string;
  /**
   * The documents of kube-aggregator and of custom resource versions do not pass through go-restful, which refuses
   * methods other than GET and unknown media types.
   */
  readonly skipsGoRestful?: boolean;
  /** The groups of its aggregated form; undefined where there is none. */
  readonly aggregates?: readonly DiscoveredGroup[];
  build(): unknown;
}

function documentAt({ info }: ApiRequest, { groups }: Snapshot, address: () => string): Document | undefined {
  if (info.isResource) return undefined;
  const parts = info.path.split('/').slice(1);
  if (parts.at(-1) === '') parts.pop();
  const [prefix, ...rest] = parts;
  const core = groups.get('');
  if (prefix === 'api') {
    const [version, ...more] = rest;
    if (version === undefined) {
      const aggregates = core === undefined ? [] : [core];
      return { name: 'api', aggregates, build: () => apiVersions(core, address()) };
    }
    return more.length > 0 ? undefined : resourceList(core, version);
  }
  const [groupName, version, ...more] = rest;
  if (groupName === undefined) {
    const named = [...groups.values()].filter(({ name }) => name !== '');
    return { name: 'apis', skipsGoRestful: true, aggregates: named, build: () => apiGroupList(named) };
  }
  const group = groupName === '' ? undefined : groups.get(groupName);
  if (group === undefined || more.length > 0) return undefined;
  if (version === undefined) {
    // kube-aggregator serves the document of every group but its own.
    return {
      name: groupName,
      skipsGoRestful: groupName !== 'apiregistration.k8s.io',
      build: () => apiGroup(group),
    };
  }
  return resourceList(group, version);
}

function resourceList(group: DiscoveredGroup | undefined, version: string): Document | undefined {
  const resources = group?.versions.get(version);
  if (group === undefined || resources === undefined) return undefined;
  return {
    name: `${group.name}/${version}`,
    skipsGoRestful: group.custom,
    build: () => apiResourceList(group.name, version, resources),
  };
}

function send(request: ApiRequest, reply: Reply, snapshot: Snapshot, document: Document): void {
  const { mediaType, isAggregated } = negotiateDiscovery(
    request.headers.accept,
    document.skipsGoRestful !== true,
  );
  if (!isAggregated || document.aggregates === undefined) {
    const { body } = encodedDocument(snapshot, document.name, mediaType, () => document.build());
    reply.send(200, mediaType, body);
    return;
  }
  const { aggregates } = document;
  const name = `${document.name} aggregated`;
  const { body, etag } = encodedDocument(snapshot, name, mediaType, () => aggregatedDiscovery(aggregates));
  const headers = { ETag: etag, Vary: 'Accept' };
  const contentType = `${mediaType};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`;
  // A 304 needs the same type: another one would replace that of the cached document.
  if (request.headers['if-none-match'] === etag) reply.send(304, contentType, '', headers);
  else reply.send(200, contentType, body, headers);
}

function encodedDocument(
  { documents }: Snapshot,
  name: string,
  mediaType: MediaType,
  build: () => unknown,
): WrittenDocument {
  const key = `${name} ${mediaType}`;
  let document = documents.get(key);
  if (document === undefined) {
    const body = Buffer.from(encode(build(), mediaType));
    const etag = `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"`;
    document = { body, etag };
    documents.set(key, document);
  }
  return document;
}

/**
 * Answers 404: with a Status below `/api` and built-in groups, as go-restful does; in plain text elsewhere, custom
 * resources' groups included.
 */
function replyUnserved({ info }: ApiRequest, reply: Reply, { groups }: Snapshot): void {
  const [, prefix, groupName = ''] = info.path.split('/');
  if (prefix === 'api' || (groupName !== '' && groups.get(groupName)?.custom === false)) {
    throw resourceNotFound();
  }
  replyNotFound(reply);
}
