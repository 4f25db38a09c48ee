import { at, listAt, textAt, textsAt } from '../../objects/json.ts';
import type { DiscoveredResource, SubresourceRow } from '../discovery/discovered-resource.ts';
import type { IncomingMessage } from 'node:http';
import { partOfV2 } from '../discovery/openapi/merge-v2.ts';
import type { RemoteGroupVersion } from '../discovery/documents.ts';
import { answerOf } from '../proxy/dial-pod.ts';
import { type ExtensionNetwork, type ExtensionServer, openExtensionRequest } from './extension-server.ts';
import { userHeaders } from './front-proxy.ts';
import { errorMessage } from '../../objects/status.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import { joinHostPort } from '../../objects/address.ts';

/**
 * The resources of an APIResourceList, as discovery shows them (apiserver `endpoints/installer.go`,
 * ConvertGroupVersionIntoToDiscovery). Rows without a name are left out.
 */
function remoteResources(group: string, version: string, list: unknown): DiscoveredResource[] {
  const rows = listAt(list, 'resources');
  return rows.flatMap((row) => {
    const plural = textAt(row, 'name');
    if (plural === '' || plural.includes('/')) return [];
    return [
      {
        group,
        version,
        plural,
        singular: textAt(row, 'singularName'),
        kind: textAt(row, 'kind'),
        namespaced: at(row, 'namespaced') === true,
        shortNames: textsAt(row, 'shortNames'),
        categories: textsAt(row, 'categories'),
        verbs: textsAt(row, 'verbs'),
        schema: '',
        subresources: subresourcesOf(plural, rows),
        custom: true,
      },
    ];
  });
}

function subresourcesOf(plural: string, rows: readonly unknown[]): SubresourceRow[] {
  return rows.flatMap((row) => {
    const name = textAt(row, 'name');
    if (!name.startsWith(`${plural}/`)) return [];
    const kindGroup = textAt(row, 'group');
    const kindVersion = textAt(row, 'version');
    return [
      {
        name: name.slice(plural.length + 1),
        kind: textAt(row, 'kind'),
        verbs: textsAt(row, 'verbs'),
        ...(kindGroup === '' && kindVersion === '' ? {} : { kindGroup, kindVersion }),
      },
    ];
  });
}

/** Parallel requests, as in kube-aggregator: each may go to another endpoint, and one answer is enough. */
const attempts = 5;
/** For all requests of one read. */
const answerTimeoutMs = 6000;
/** The limit for discovery documents; a larger one fails the check. */
const maxDocumentBytes = 16 * 1024 * 1024;
/** The limit for OpenAPI 2, which is parsed and encoded again as a whole; larger documents are left out. */
const maxOpenApiV2Bytes = 4 * 1024 * 1024;

/** The user of requests for the discovery of extension API servers. */
const aggregatorUser: UserInfo = {
  name: 'system:kube-aggregator',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

/**
 * Reads the discovery documents of an extension API server for a group version: its resources, where its OpenAPI 3
 * document is, and its part of the OpenAPI 2 document.
 *
 * @param known the documents of the last read.
 * @param stopping ends the requests.
 * @throws {Error} with kube-aggregator's message, if no request is answered in time.
 */
export async function discoverRemote(
  extension: ExtensionNetwork,
  server: ExtensionServer,
  group: string,
  version: string,
  known: RemoteOpenApi | undefined,
  stopping: AbortSignal,
): Promise<Pick<RemoteGroupVersion, 'resources'> & RemoteOpenApi> {
  const done = new AbortController();
  const stop = (): void => done.abort();
  const timer = setTimeout(stop, answerTimeoutMs);
  stopping.addEventListener('abort', stop);
  if (stopping.aborted) stop();
  const groupVersion = `apis/${group}/${version}`;
  try {
    const reads = Array.from({ length: attempts }, async () =>
      readDocument(extension, server, `/${groupVersion}`, done.signal),
    );
    const list = await Promise.any(reads);
    const openApi = await openApiAddress(extension, server, groupVersion, done.signal);
    // The address contains the hash of the document: the same address is the same document.
    const isSame = openApi !== undefined && openApi === known?.openApi && known.openApiV2 !== undefined;
    const openApiV2 = isSame
      ? known.openApiV2
      : partOfV2(
          await optional(readDocument(extension, server, '/openapi/v2', done.signal, maxOpenApiV2Bytes)),
          `/${groupVersion}/`,
        );
    return { resources: remoteResources(group, version, list), openApi, openApiV2 };
  } catch (error) {
    const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error];
    throw first instanceof Error ? first : new Error(String(first), { cause: error });
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener('abort', stop);
    // Ends the other requests.
    stop();
  }
}

/** The OpenAPI documents of a group version. */
type RemoteOpenApi = Pick<RemoteGroupVersion, 'openApi' | 'openApiV2'>;

async function optional(document: Promise<unknown>): Promise<unknown> {
  return await document.catch(() => undefined);
}

/** Undefined where the server has none. */
async function openApiAddress(
  extension: ExtensionNetwork,
  server: ExtensionServer,
  groupVersion: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const index = await optional(readDocument(extension, server, '/openapi/v3', signal));
  return textAt(index, 'paths', groupVersion, 'serverRelativeURL') || undefined;
}

async function readDocument(
  extension: ExtensionNetwork,
  server: ExtensionServer,
  path: string,
  signal: AbortSignal,
  maxBytes = maxDocumentBytes,
): Promise<unknown> {
  const target = extension.network.resolve(server.namespace, server.name, server.port);
  const url = `https://${joinHostPort(target.host, target.port)}${path}`;
  let response: IncomingMessage;
  try {
    const headers = { ...userHeaders(aggregatorUser), Accept: 'application/json' };
    const requested = { method: 'GET', path, headers };
    const outgoing = await openExtensionRequest(extension, server, target, requested, signal);
    signal.addEventListener('abort', () => outgoing.destroy(), { once: true });
    outgoing.end();
    ({ response } = await answerOf(outgoing));
  } catch (error) {
    if (signal.aborted) throw new Error(`timed out waiting for ${url}`, { cause: error });
    const why = errorMessage(error);
    throw new Error(`failing or missing response from ${url}: Get ${JSON.stringify(url)}: ${why}`, {
      cause: error,
    });
  }
  const status = response.statusCode ?? 0;
  if (status < 200 || status >= 300) {
    response.destroy();
    throw new Error(`failing or missing response from ${url}: bad status from ${url}: ${status}`);
  }
  return parsed(await bodyOf(response, maxBytes));
}

/** An answer that is not JSON counts as an empty document. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

async function bodyOf(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > maxBytes) throw new Error(`the document is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
