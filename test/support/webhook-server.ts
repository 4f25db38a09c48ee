import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { recordAt, textAt } from '../../src/objects/json.ts';

/** What a webhook answers: a whole answer, a body of its own, or nothing ever. */
export type Scripted =
  | { readonly response: JsonRecord; readonly after?: Promise<unknown> }
  | { readonly review: unknown; readonly after?: Promise<unknown> }
  | { readonly status?: number; readonly text: string; readonly contentType?: string }
  /** Whatever a server can do. */
  | { readonly serve: (response: ServerResponse) => void }
  | 'hang'
  | 'cut';

/** A webhook, of admission or conversion, that says what a test wants. */
export class WebhookServer {
  /** Of every question, by path. */
  readonly asked: { readonly path: string; readonly review: JsonRecord; readonly timeout: string | null }[] =
    [];
  readonly port: number;
  /** base64 of PEM: the `caBundle`. */
  readonly caBundle: string;
  /** The same of the server's own certificate, as controller-runtime's envtest gives it. */
  readonly ownBundle: string;
  readonly #server: Server;
  readonly #answers: Map<string, (request: JsonRecord) => Scripted>;

  private constructor(
    server: Server,
    bundles: { readonly caBundle: string; readonly ownBundle: string },
    answers: Map<string, (request: JsonRecord) => Scripted>,
  ) {
    this.#server = server;
    this.#answers = answers;
    ({ caBundle: this.caBundle, ownBundle: this.ownBundle } = bundles);
    const address = server.address();
    this.port = isAddress(address) ? address.port : 0;
  }

  /**
   * @param hosts that its certificate is for.
   * @param now when it was issued.
   */
  static async start(
    hosts: readonly string[] = ['127.0.0.1'],
    now: Date = new Date(),
  ): Promise<WebhookServer> {
    const authority = createCertificateAuthority('webhook-ca', { now });
    const { certificate, key } = issueServerCertificate(authority, 'webhook', hosts, { now });
    const answers = new Map<string, (request: JsonRecord) => Scripted>();
    const server = createServer({ cert: certificate, key });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const base64 = (pem: string) => Buffer.from(pem).toString('base64');
    const bundles = { caBundle: base64(authority.certificate), ownBundle: base64(certificate) };
    const scripted = new WebhookServer(server, bundles, answers);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { pathname, searchParams } = new URL(request.url ?? '/', 'https://localhost');
        const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString());
        const review = isRecord(parsed) ? parsed : {};
        scripted.asked.push({ path: pathname, review, timeout: searchParams.get('timeout') });
        const answer = answers.get(pathname)?.(recordAt(review, 'request')) ?? {
          response: { allowed: true },
        };
        if (answer === 'hang') return;
        if (answer === 'cut') {
          request.socket.destroy();
          return;
        }
        if ('serve' in answer) {
          answer.serve(response);
          return;
        }
        if ('text' in answer) {
          response.writeHead(answer.status ?? 200, {
            'content-type': answer.contentType ?? 'application/json',
          });
          response.end(answer.text);
          return;
        }
        const uid = textAt(review, 'request', 'uid');
        const { apiVersion } = review;
        const body =
          'review' in answer
            ? answer.review
            : { apiVersion, kind: 'AdmissionReview', response: { uid, ...answer.response } };
        const wait = 'after' in answer ? answer.after : undefined;
        void Promise.resolve(wait).then(() => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.end(JSON.stringify(body));
        });
      });
    });
    return scripted;
  }

  /** What is answered at a path from now on. */
  at(path: string, answer: (request: JsonRecord) => Scripted): void {
    this.#answers.set(path, answer);
  }

  url(path: string): string {
    return `https://127.0.0.1:${this.port}${path}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A JSON Patch as a webhook sends it. */
export function patchResponse(patch: readonly object[]): { readonly response: JsonRecord } {
  return {
    response: {
      allowed: true,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    },
  };
}

function isAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
