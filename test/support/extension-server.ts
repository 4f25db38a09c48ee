import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';

const base64 = (pem: string): string => Buffer.from(pem).toString('base64');

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** An extension API server of a test: it serves `things` of one group version, and what a test adds. */
export class ExtensionApiServer {
  /** What came below a path of the group version, `"GET /apis/…"` first. */
  readonly requests: { readonly line: string; readonly headers: IncomingMessage['headers']; peer: string }[] =
    [];
  readonly port: number;
  /** base64 of PEM: the `caBundle`. */
  readonly caBundle: string;
  /** The same of the server's own certificate. */
  readonly ownBundle: string;
  readonly groupVersion: string;
  /** Answers before the usual documents are looked at; true: it has answered. */
  override: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  upgrade: (request: IncomingMessage, socket: Duplex) => void = (_request, socket) => void socket.destroy();
  readonly #server: Server;
  readonly #serve: Serve = (request, response) => {
    const { url = '', method = '', headers, socket } = request;
    this.requests.push({ line: `${method} ${url}`, headers, peer: peerOf(socket) });
    if (this.override(request, response)) return;
    const document = this.#documents().get(url.split('?')[0] ?? '');
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  };

  private constructor(server: Server, port: number, pem: readonly [string, string], groupVersion: string) {
    this.#server = server;
    this.port = port;
    [this.caBundle, this.ownBundle] = [base64(pem[0]), base64(pem[1])];
    this.groupVersion = groupVersion;
    server.on('request', (request, response) => this.#serve(request, response));
    server.on('upgrade', (request, socket) => this.upgrade(request, socket));
  }

  /** @param name of its certificate: `<service>.<namespace>.svc`. */
  static async start(groupVersion: string, name: string): Promise<ExtensionApiServer> {
    const now = new Date();
    const authority = createCertificateAuthority('extension-ca', { now });
    const { certificate, key } = issueServerCertificate(authority, 'extension', [name], { now });
    const server = createServer({ cert: certificate, key, requestCert: true, rejectUnauthorized: false });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = address === null || typeof address === 'string' ? 0 : address.port;
    return new ExtensionApiServer(server, port, [authority.certificate, certificate], groupVersion);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #documents(): Map<string, unknown> {
    const openApi = `/openapi/v3/apis/${this.groupVersion}`;
    return new Map<string, unknown>([
      [
        `/apis/${this.groupVersion}`,
        {
          kind: 'APIResourceList',
          apiVersion: 'v1',
          groupVersion: this.groupVersion,
          resources: [
            {
              name: 'things',
              singularName: 'thing',
              namespaced: true,
              kind: 'Thing',
              verbs: ['get', 'list', 'create'],
              shortNames: ['th'],
            },
            { name: 'things/status', singularName: '', namespaced: true, kind: 'Thing', verbs: ['get'] },
          ],
        },
      ],
      [`/apis/${this.groupVersion}/namespaces/default/things`, thingList(this.groupVersion)],
      [
        '/openapi/v3',
        { paths: { [openApi.slice('/openapi/v3/'.length)]: { serverRelativeURL: `${openApi}?hash=1` } } },
      ],
      [openApi, { openapi: '3.0.0', info: { title: 'things' } }],
    ]);
  }
}

function thingList(groupVersion: string): unknown {
  const thing = { apiVersion: groupVersion, kind: 'Thing', metadata: { name: 'one', namespace: 'default' } };
  return { kind: 'ThingList', apiVersion: groupVersion, metadata: {}, items: [thing] };
}

/** The subject of the client's certificate. */
function peerOf(socket: IncomingMessage['socket']): string {
  return socket instanceof TLSSocket ? (socket.getPeerX509Certificate()?.subject ?? '') : '';
}
