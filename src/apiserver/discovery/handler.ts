import { createHash } from 'node:crypto';
import { methodNotAllowed, resourceNotFound } from '../../objects/status-errors.ts';
import { encode } from '../http/encoding.ts';
import type { ApiRequest, Handler, Reply } from '../http/exchange.ts';
import type { MediaType } from '../http/media-types.ts';
import { negotiateDiscovery } from '../http/negotiation.ts';
import { replyNotFound } from '../http/router.ts';
import type { DiscoveredResource, DiscoveredResources } from './discovered-resource.ts';
import {
  type DiscoveredGroup,
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  groupResources,
} from './documents.ts';
import type { RemoteGroupVersion } from './remote-group-version.ts';

/** Everything that is built once per set of served resources. */
interface Snapshot {
  readonly resources: readonly DiscoveredResource[];
  readonly remote: readonly RemoteGroupVersion[];
  readonly groups: ReadonlyMap<string, DiscoveredGroup>;
  /** Written documents, by what they are. */
  readonly written: Map<string, WrittenDocument>;
}

interface WrittenDocument {
  readonly body: Buffer;
  readonly etag: string;
}

/**
 * Serves `/api`, `/api/v1`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`, aggregated discovery included. It
 * also answers all unknown paths below `/api` and `/apis`, because it has the groups: a Status below a built-in group,
 * plain text elsewhere.
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
      snapshot = { resources, remote, groups: groupResources(resources, remote), written: new Map() };
    }
    const document = documentAt(request, snapshot, address);
    if (document === undefined) {
      unserved(request, reply, snapshot);
    } else if (request.method === 'GET' || document.unguarded === true) {
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
   * The aggregator's documents and those of custom resource versions do not pass go-restful, which refuses methods
   * other than GET and unknown media types.
   */
  readonly unguarded?: boolean;
  /** Has an aggregated form with these groups. */
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
    return { name: 'apis', unguarded: true, aggregates: named, build: () => apiGroupList(named) };
  }
  const group = groupName === '' ? undefined : groups.get(groupName);
  if (group === undefined || more.length > 0) return undefined;
  if (version === undefined) {
    // the aggregator serves every group but its own
    return {
      name: groupName,
      unguarded: groupName !== 'apiregistration.k8s.io',
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
    unguarded: group.custom,
    build: () => apiResourceList(group.name, version, resources),
  };
}

function send(request: ApiRequest, reply: Reply, snapshot: Snapshot, document: Document): void {
  const { mediaType, isAggregated } = negotiateDiscovery(request.headers.accept, document.unguarded !== true);
  if (!isAggregated || document.aggregates === undefined) {
    const { body } = write(snapshot, document.name, mediaType, () => document.build());
    reply.send(200, mediaType, body);
    return;
  }
  const { aggregates } = document;
  const name = `${document.name} aggregated`;
  const { body, etag } = write(snapshot, name, mediaType, () => aggregatedDiscovery(aggregates));
  const headers = { ETag: etag, Vary: 'Accept' };
  const contentType = `${mediaType};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`;
  // a 304 with another type would change the type of what the client's cache holds
  if (request.headers['if-none-match'] === etag) reply.send(304, contentType, '', headers);
  else reply.send(200, contentType, body, headers);
}

function write(
  { written }: Snapshot,
  name: string,
  mediaType: MediaType,
  build: () => unknown,
): WrittenDocument {
  const key = `${name} ${mediaType}`;
  let document = written.get(key);
  if (document === undefined) {
    const body = Buffer.from(encode(build(), mediaType));
    const etag = `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"`;
    document = { body, etag };
    written.set(key, document);
  }
  return document;
}

/**
 * Nothing is served here. Below `/api` and below the built-in groups, go-restful answers with a Status; anywhere
 * else, custom resources' groups included, requests do not reach it.
 */
function unserved({ info }: ApiRequest, reply: Reply, { groups }: Snapshot): void {
  const [, prefix, groupName = ''] = info.path.split('/');
  if (prefix === 'api' || (groupName !== '' && groups.get(groupName)?.custom === false)) {
    throw resourceNotFound();
  }
  replyNotFound(reply);
}

/** Serves `/`: the paths there are (apiserver `server/routes/index.go`). */
export function pathsHandler(
  served: DiscoveredResources,
  remoteVersions: () => readonly RemoteGroupVersion[],
  more: readonly string[],
): Handler {
  return async (_request, reply) => {
    await Promise.resolve();
    const paths = new Set<string>(['/api', '/apis', ...more]);
    for (const group of groupResources(served(), remoteVersions()).values()) {
      const root = group.name === '' ? '/api' : `/apis/${group.name}`;
      paths.add(root);
      for (const version of group.versions.keys()) paths.add(`${root}/${version}`);
    }
    reply.send(200, 'application/json', JSON.stringify({ paths: [...paths].sort() }, null, 2));
  };
}
